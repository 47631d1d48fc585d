"""The small server that ships with the package, as its lines: a person tries servers with it, so it speaks the protocol properly."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from agentic.local.mcp_server.notes import Notebook, tools
from agentic.local.mcp_server.protocol import answers


def ask(folder: Path, *messages: Any) -> list[Any]:
    lines = [message if isinstance(message, bytes) else json.dumps(message).encode() for message in messages]
    return [json.loads(line) for line in answers(lines, tools(Notebook(folder)))]


def request(method: str, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 7, "method": method, "params": params}


def call(folder: Path, tool: str, **arguments: str) -> Any:
    [answer] = ask(folder, request("tools/call", name=tool, arguments=arguments))
    return answer["result"]


def test_the_handshake_takes_the_version_that_is_asked_for_and_names_its_newest_for_one_it_does_not_know(
    tmp_path: Path,
) -> None:
    asked = [request("initialize", protocolVersion=version) for version in ("2024-11-05", "2031-01-01")]
    versions = [answer["result"]["protocolVersion"] for answer in ask(tmp_path, *asked)]
    assert versions == ["2024-11-05", "2025-11-25"]


def test_a_note_that_was_written_is_found_by_its_words_and_by_the_next_process(tmp_path: Path) -> None:
    assert call(tmp_path, "add_note", title="Kiln", text="Door sticks")["structuredContent"]["kept"] == "Kiln"
    found = call(tmp_path, "find_notes", words="door")
    assert found["structuredContent"] == {"notes": [{"title": "Kiln", "text": "Door sticks"}]}
    assert json.loads(found["content"][0]["text"]) == found["structuredContent"]
    assert len(call(tmp_path, "find_notes", words="glaze 14")["structuredContent"]["notes"]) == 2


def test_arguments_that_are_not_the_tools_own_are_an_error_of_the_tool_and_write_nothing(tmp_path: Path) -> None:
    assert call(tmp_path, "add_note", title="Kiln")["isError"]
    [answer] = ask(tmp_path, request("tools/call", name="add_note", arguments={"title": 1, "text": "x"}))
    assert answer["result"]["isError"]
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("sent", "code"),
    [(request("prompts/list"), -32601), (request("tools/call", name="rm"), -32602), (b"{", -32700), (b"[]", -32700)],
)
def test_what_it_does_not_understand_it_answers_with_an_error_of_the_protocol(
    tmp_path: Path, sent: Any, code: int
) -> None:
    [answer] = ask(tmp_path, sent)
    assert answer["error"]["code"] == code


def test_notifications_are_not_answered(tmp_path: Path) -> None:
    assert ask(tmp_path, {"jsonrpc": "2.0", "method": "notifications/initialized"}) == []


def test_it_runs_as_a_module_with_nothing_but_a_home_and_ends_with_its_input(tmp_path: Path) -> None:
    lines = [request("initialize"), request("tools/call", name="add_note", arguments={"title": "a", "text": "b"})]
    done = subprocess.run(
        [sys.executable, "-m", "agentic.local.mcp_server"],
        env={"HOME": str(tmp_path)},
        input="".join(f"{json.dumps(line)}\n" for line in lines),
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
    )
    assert [json.loads(line)["id"] for line in done.stdout.splitlines()] == [7, 7]
    assert json.loads((tmp_path / "notes.jsonl").read_text()) == {"title": "a", "text": "b"}
