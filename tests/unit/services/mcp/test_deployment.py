"""The file of a deployment's stdio servers: what may stand in it, what is refused by name, and how it is written."""

import json
import logging
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from agentic.services.mcp.config import StdioLaunch
from agentic.services.mcp.deployment import (
    DeploymentRefused,
    launches_from_environment,
    put_launch,
    read_launches,
)
from agentic.services.mcp.locating import VARIABLE

NOTES = {"command": "npx", "args": ["-y", "notes-server"], "env": {"NOTES_FOLDER": "/srv/notes"}, "cwd": "/srv"}


def written(folder: Path, servers: Any) -> Path:
    path = folder / "servers.json"
    path.write_text(servers if isinstance(servers, str) else json.dumps({"mcpServers": servers}))
    return path


def refused(path: Path) -> tuple[str, ...]:
    with pytest.raises(DeploymentRefused) as caught:
        read_launches(path)
    assert str(path) in str(caught.value)
    return caught.value.faults


def test_a_file_in_the_shape_of_the_field_says_how_each_server_is_started(tmp_path: Path) -> None:
    read = read_launches(written(tmp_path, {"notes": NOTES, "clock": {"type": "stdio", "command": "/opt/clock"}}))
    assert read["notes"] == StdioLaunch(
        command=("npx", "-y", "notes-server"), cwd="/srv", variables={"NOTES_FOLDER": "/srv/notes"}
    )
    assert read["clock"] == StdioLaunch(command=("/opt/clock",))


@pytest.mark.parametrize(
    ("entry", "fault"),
    [
        ("npx notes-server", "an entry is an object"),
        ({"args": ["x"]}, "command is the program"),
        ({"command": ["npx"]}, "command is the program"),
        ({"command": " "}, "command is a program"),
        ({"command": "npx", "args": "-y"}, "args is a list"),
        ({"command": "npx", "env": {"N": 1}}, "env is an object of texts"),
        ({"command": "npx", "autoApprove": ["all"]}, "autoApprove means nothing here"),
        ({"url": "https://tools.vendor.example/mcp"}, "mcp add NAME --url"),
        ({"command": "npx", "type": "sse"}, "the type"),
        ({"command": "npx", "home": "relative"}, "home is an absolute path"),
        ({"command": "npx", "env": {"PATH": "/evil"}}, "one that every child gets"),
        ({"command": "npx", "env": {"KEY": "${env:KEY}"}}, "substitution"),
    ],
)
def test_an_entry_that_says_something_else_is_refused_by_name(tmp_path: Path, entry: Any, fault: str) -> None:
    [found] = refused(written(tmp_path, {"good": NOTES, "wrong": entry}))
    assert found.startswith("wrong: ")
    assert fault in found


@pytest.mark.guarantee("T4")
@pytest.mark.parametrize(
    "entry",
    [
        {"command": "npx", "env": {"API_KEY": "hush-4711"}},
        {"command": "npx", "env": {"NOTION_TOKEN": "hush-4711"}},
        {"command": "npx", "env": {"STORE": "postgres://me:hush-4711@db.example/notes"}},
        {"command": "npx", "args": ["--api-key=hush-4711"]},
    ],
)
def test_a_credential_belongs_into_the_vault_and_its_value_is_not_quoted(tmp_path: Path, entry: Any) -> None:
    [found] = refused(written(tmp_path, {"notes": entry}))
    assert "keep it in the vault and use the scheme env" in found
    assert "hush" not in found


def test_every_fault_of_every_entry_is_named_at_once(tmp_path: Path) -> None:
    faults = refused(
        written(tmp_path, {"One": {"command": "npx"}, "two": {"command": "x", "cwd": "here", "home": "a"}})
    )
    assert [fault.partition(":")[0] for fault in faults] == ["One", "two", "two"]


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ('{"mcpServers": {', "line 1"),
        ("[]", "it is an object"),
        ('{"servers": {}}', "it is an object"),
        ('{"mcpServers": {}, "inputs": []}', "inputs"),
        ('{"mcpServers": {"a": {"command": "x"}, "a": {"command": "y"}}}', "a stands twice"),
        ("[" * 100_000, "no JSON we take"),
        ('{"mcpServers": {}}' + " " * 1024 * 1024, "larger"),
    ],
)
def test_what_is_no_such_file_is_refused_whole(tmp_path: Path, text: str, fault: str) -> None:
    assert fault in "".join(refused(written(tmp_path, text)))


@pytest.mark.guarantee("T4")
def test_a_file_that_everybody_may_write_names_no_programs_to_start(tmp_path: Path) -> None:
    path = written(tmp_path, {"notes": NOTES})
    path.chmod(0o666)
    assert "chmod o-w" in "".join(refused(path))


def test_a_file_that_the_environment_names_has_to_be_there_and_one_of_the_folder_may_come_later(tmp_path: Path) -> None:
    path = tmp_path / "servers.json"
    assert launches_from_environment(None, {}) == {}
    with pytest.raises(DeploymentRefused, match=VARIABLE):
        launches_from_environment(None, {VARIABLE: str(path)})
    later = launches_from_environment(path, {})
    assert dict(later) == {}
    put_launch(path, "notes", StdioLaunch(command=("npx", "notes")))
    assert later["notes"].command == ("npx", "notes")


def test_a_change_is_seen_and_one_that_cannot_be_read_leaves_the_servers_as_they_were(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = written(tmp_path, {"notes": NOTES})
    launches = launches_from_environment(None, {VARIABLE: str(path)})
    written(tmp_path, {"clock": {"command": "clock"}})
    assert list(launches) == ["clock"]
    written(tmp_path, '{"mcpServers": {"clock"')
    with caplog.at_level(logging.WARNING):
        assert list(launches) == ["clock"]
        assert len(launches) == 1
    assert len(caplog.records) == 1
    assert "stay as they were" in caplog.text


def test_writing_keeps_the_other_servers_and_the_owner_alone_may_read_the_file(tmp_path: Path) -> None:
    path = tmp_path / "home" / "servers.json"
    notes = StdioLaunch(command=("npx", "-y", "n"), home="/h", path="/bin", variables={"A": "b"}, cwd="/c")
    put_launch(path, "notes", notes)
    put_launch(path, "clock", StdioLaunch(command=("clock",)))
    assert read_launches(path) == {"notes": notes, "clock": StdioLaunch(command=("clock",))}
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    put_launch(path, "notes", None)
    put_launch(path, "notes", None)
    assert list(read_launches(path)) == ["clock"]
    assert [entry.name for entry in path.parent.iterdir()] == ["servers.json"]


def test_a_file_that_cannot_be_read_or_would_not_be_is_not_written_over(tmp_path: Path) -> None:
    path = written(tmp_path, '{"mcpServers": {"notes": ')
    with pytest.raises(DeploymentRefused):
        put_launch(path, "clock", StdioLaunch(command=("clock",)))
    assert path.read_text() == '{"mcpServers": {"notes": '
    written(tmp_path, {"notes": NOTES})
    with pytest.raises(DeploymentRefused, match=r"cannot take this server: Not A Name: server_id"):
        put_launch(path, "Not A Name", StdioLaunch(command=("clock",)))
    assert list(read_launches(path)) == ["notes"]
    assert [entry.name for entry in tmp_path.iterdir()] == ["servers.json"]


def test_commands_that_write_at_once_lose_no_server(tmp_path: Path) -> None:
    path = tmp_path / "servers.json"
    names = [f"server_{number}" for number in range(20)]
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda name: put_launch(path, name, StdioLaunch(command=(name,))), names, timeout=30))
    assert sorted(read_launches(path)) == sorted(names)
