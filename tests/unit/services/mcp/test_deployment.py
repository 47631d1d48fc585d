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
    LaunchFile,
    launches_from_environment,
    not_started,
    put_launch,
)
from agentic.services.mcp.launch_entries import DeploymentRefused, read_entries
from agentic.services.mcp.locating import VARIABLE

NOTES = {"command": "npx", "args": ["-y", "notes-server"], "env": {"NOTES_FOLDER": "/srv/notes"}, "cwd": "/srv"}


def written(folder: Path, servers: Any) -> Path:
    path = folder / "servers.json"
    path.write_text(servers if isinstance(servers, str) else json.dumps({"mcpServers": servers}))
    return path


def read(path: Path) -> dict[str, StdioLaunch]:
    entries = read_entries(path)
    assert not entries.faults and entries.unusable is None
    return dict(entries.launches)


def refused(path: Path) -> tuple[str, ...]:
    faults = LaunchFile(path).faults
    assert faults
    return faults


def test_a_file_in_the_shape_of_the_field_says_how_each_server_is_started(tmp_path: Path) -> None:
    found = read(
        written(tmp_path, {"notes": NOTES, "clock": {"type": "stdio", "command": "/opt/clock", "start_s": 90}})
    )
    assert found["notes"] == StdioLaunch(
        command=("npx", "-y", "notes-server"), cwd="/srv", variables={"NOTES_FOLDER": "/srv/notes"}
    )
    assert found["clock"] == StdioLaunch(command=("/opt/clock",), start_s=90)


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
        ({"command": "npx", "start_s": 121}, "start_s is a number of seconds from 1 to 120"),
        ({"command": "npx", "start_s": 0.5}, "start_s is a number of seconds from 1 to 120"),
        ({"command": "npx", "start_s": True}, "start_s is a number of seconds from 1 to 120"),
        ({"command": "npx", "start_s": "60"}, "start_s is a number of seconds from 1 to 120"),
        ({"command": "npx", "cwd": "/srv\0"}, "that no program can be given"),
        ({"command": "npx", "args": ["\ud800"]}, "that no program can be given"),
    ],
)
def test_an_entry_that_says_something_else_is_refused_by_name_and_costs_no_other(
    tmp_path: Path, entry: Any, fault: str
) -> None:
    path = written(tmp_path, {"good": NOTES, "wrong": entry})
    [found] = refused(path)
    assert found.startswith("wrong: ")
    assert fault in found
    launches = LaunchFile(path)
    assert list(launches) == ["good"]
    assert f"its entry in {path} cannot be used" in launches.not_started("wrong")
    assert fault in launches.not_started("wrong")
    assert "no command for it" in launches.not_started("nobody")


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
    path = written(tmp_path, text)
    assert fault in "".join(refused(path))
    assert fault in LaunchFile(path).not_started("notes")
    assert not LaunchFile(path)


@pytest.mark.guarantee("T4")
def test_a_file_that_everybody_may_write_names_no_programs_to_start(tmp_path: Path) -> None:
    path = written(tmp_path, {"notes": NOTES})
    path.chmod(0o666)
    assert "chmod o-w" in "".join(refused(path))


def test_a_file_that_the_environment_names_has_to_be_there_and_one_of_the_folder_may_come_later(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "servers.json"
    assert launches_from_environment(None, {}) == {}
    with caplog.at_level(logging.WARNING):
        missing = launches_from_environment(None, {VARIABLE: str(path)})
    assert dict(missing) == {}
    [told] = caplog.records
    assert str(path) in told.getMessage() and VARIABLE in told.getMessage()
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
    assert "stays as it was" in caplog.text


def test_of_a_change_what_can_be_used_counts_and_an_entry_that_cannot_stays_as_it_was(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = written(tmp_path, {"notes": NOTES, "clock": {"command": "clock"}})
    launches = launches_from_environment(None, {VARIABLE: str(path)})
    written(tmp_path, {"notes": {**NOTES, "args": "-y"}, "bell": {"command": "bell"}, "horn": {"command": 1}})
    with caplog.at_level(logging.WARNING):
        assert sorted(launches) == ["bell", "notes"]
        assert launches["notes"].command == ("npx", "-y", "notes-server")
    [told] = [record.getMessage() for record in caplog.records]
    assert "notes: args is a list of texts" in told and "horn: command is the program" in told
    assert not_started(launches, "notes") is None
    assert "no command for it" in (not_started(launches, "clock") or "")


def test_what_is_wrong_when_a_process_starts_is_logged_once_and_costs_nothing_else(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = written(tmp_path, {"notes": {"command": 4711}, "clock": {"command": "clock"}})
    with caplog.at_level(logging.WARNING):
        launches = launches_from_environment(None, {VARIABLE: str(path)})
        assert [list(launches) for _ in range(2)] == [["clock"], ["clock"]]
    [told] = [record.getMessage() for record in caplog.records]
    assert f"{path} cannot be used: notes: command is the program, as text" in told


def test_a_right_that_is_given_away_is_seen_without_another_change(tmp_path: Path) -> None:
    path = written(tmp_path, {"notes": NOTES})
    launches = LaunchFile(path)
    path.chmod(0o666)
    assert "chmod o-w" in "".join(launches.faults)
    assert list(launches) == ["notes"]


def test_writing_keeps_the_other_servers_and_the_owner_alone_may_read_the_file(tmp_path: Path) -> None:
    path = tmp_path / "home" / "servers.json"
    notes = StdioLaunch(command=("npx", "-y", "n"), home="/h", path="/bin", variables={"A": "b"}, cwd="/c", start_s=2.5)
    put_launch(path, "notes", notes)
    put_launch(path, "clock", StdioLaunch(command=("clock",)))
    assert read(path) == {"notes": notes, "clock": StdioLaunch(command=("clock",))}
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    put_launch(path, "notes", None)
    put_launch(path, "notes", None)
    assert list(read(path)) == ["clock"]
    assert [entry.name for entry in path.parent.iterdir()] == ["servers.json"]


def test_a_file_that_cannot_be_read_or_would_not_be_is_not_written_over(tmp_path: Path) -> None:
    path = written(tmp_path, '{"mcpServers": {"notes": ')
    with pytest.raises(DeploymentRefused):
        put_launch(path, "clock", StdioLaunch(command=("clock",)))
    assert path.read_text() == '{"mcpServers": {"notes": '
    written(tmp_path, {"notes": NOTES})
    with pytest.raises(DeploymentRefused, match=r"cannot take this server: Not A Name: server_id"):
        put_launch(path, "Not A Name", StdioLaunch(command=("clock",)))
    assert list(read(path)) == ["notes"]
    assert [entry.name for entry in tmp_path.iterdir()] == ["servers.json"]


def test_a_place_where_nothing_can_be_written_is_told_as_that(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for path in (tmp_path / "file" / "servers.json", tmp_path / "folder.json"):
        (tmp_path / "folder.json").mkdir(exist_ok=True)
        with pytest.raises(DeploymentRefused) as refused:
            put_launch(path, "clock", StdioLaunch(command=("clock",)))
        assert str(path) in str(refused.value)
        assert ("cannot be written" in str(refused.value)) is (path.name == "servers.json")


def test_commands_that_write_at_once_lose_no_server(tmp_path: Path) -> None:
    path = tmp_path / "servers.json"
    names = [f"server_{number}" for number in range(20)]
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda name: put_launch(path, name, StdioLaunch(command=(name,))), names, timeout=30))
    assert sorted(read(path)) == sorted(names)


def test_a_server_is_written_beside_an_entry_that_cannot_be_used_which_stays_for_whoever_mends_it(
    tmp_path: Path,
) -> None:
    wrong = {"command": "npx", "args": "\ud800", "autoApprove": ["\u00fc"]}
    path = written(tmp_path, {"wrong": wrong})
    put_launch(path, "clock", StdioLaunch(command=("clock",)))
    assert json.loads(path.read_text())["mcpServers"]["wrong"] == wrong
    assert list(LaunchFile(path)) == ["clock"]
    put_launch(path, "wrong", StdioLaunch(command=("npx",)))
    assert sorted(read(path)) == ["clock", "wrong"]
