"""The demo of somebody else's tool server: real processes, a real child process, and what is left to read of it."""

import json
import shlex
import sys
from collections.abc import Callable
from typing import Any

import pytest

pytestmark = pytest.mark.timeout(400)


async def _told(here: Any, *arguments: str) -> Any:
    """What a command answers as JSON."""
    answered = await here.run(*arguments, "--json")
    assert answered.status == 0, answered.stderr
    return json.loads(answered.stdout)


def _titles(here: Any) -> list[str]:
    """Of the notes in the notebook."""
    lines = (here.folder / "mcp_homes" / "pottery" / "notes.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line)["title"] for line in lines]


@pytest.mark.guarantee("T4", "B3")
async def test_a_server_is_added_verified_activated_read_and_written_once_and_its_orders_are_nobodys(
    agentic: Callable[..., Any], database: str
) -> None:
    here = agentic(DATABASE_URL=database)
    for time in range(2):  # in one folder and one database
        ended = await here.run("demo", "--mcp", "--yes", "--json")
        assert ended.status == 0, ended.stderr
        end = ended.last
        assert (end["status"], end["tools"], end["notes"], end["fenced"]) == ("succeeded", 3, 1, True)
        assert (end["approvals"], end["uncertain"], end["emails"], end["killed"]) == (1, 0, 0, False)
        assert _titles(here) == ["Call Mira Sand"] * (time + 1)
        steps = [
            "Known from an earlier demo" if time else "Added",
            "Verified",
            "Activated",
            "the run has read external",
        ]
        said = ended.stderr
        assert [said.index(step) for step in steps] == sorted(said.index(step) for step in steps)
        await here.workers_gone()
    shown = await _told(here, "runs", "show", end["run_id"])
    assert [effect["tool"] for effect in shown["effects"]] == ["mcp.pottery.add_note"]
    [server] = await _told(here, "mcp", "list")
    assert (server["server_id"], server["state"], server["owner"]) == ("pottery", "active", "operator")
    read = await _told(here, "mcp", "call", "pottery", "find_notes", "--arguments", '{"words": "Mira"}')
    assert len(read["result"]["data"]["structured"]["notes"]) == 3


@pytest.mark.guarantee("J3", "J6")
async def test_a_worker_that_dies_between_the_note_and_its_answer_leaves_one_note_and_one_outcome_for_an_operator(
    agentic: Callable[..., Any], database: str
) -> None:
    here = agentic(DATABASE_URL=database)
    ended = await here.run("demo", "--mcp", "--crash", "--yes", "--json")
    assert ended.status == 0, ended.stderr
    end = ended.last
    assert (end["killed"], end["notes"], end["uncertain"], end["fenced"]) == (True, 1, 1, True)
    assert _titles(here) == ["Call Mira Sand"]
    [unknown] = await _told(here, "uncertain", "list")
    assert unknown["tool"] == "mcp.pottery.add_note"
    shown = await _told(here, "runs", "show", end["run_id"])
    assert "so I did not write it again" in shown["run"]["answer"]


async def test_a_rejected_note_is_not_written_and_all_is_well(agentic: Callable[..., Any]) -> None:
    here = agentic()
    async with here.at_terminal("demo", "--mcp", "--json") as terminal:
        await terminal.shows("Approve this call? [y/n]")
        terminal.type("n\n")
        ended = await terminal.ended()
    assert ended.status == 0, ended.stderr
    assert (ended.last["rejected"], ended.last["notes"], ended.last["uncertain"]) == (True, 0, 0)
    assert "You rejected it; no note was written." in ended.stderr


async def test_in_an_empty_folder_a_server_is_added_activated_and_called_by_a_person_who_is_asked(
    agentic: Callable[..., Any],
) -> None:
    here = agentic()
    assert (await here.run("db", "migrate")).status == 0
    command = f"{shlex.quote(sys.executable)} -m agentic.local.mcp_server"
    added = await here.run("mcp", "add", "pottery", "--stdio", command)
    assert added.status == 0, added.stderr
    assert "mcp activate pottery" in added.stderr
    assert (await here.run("mcp", "activate", "pottery")).status == 0
    note = ("mcp", "call", "pottery", "add_note", "--arguments", '{"title": "Kiln", "text": "Door sticks"}', "--json")
    for answer, state in (("n", "rejected"), ("what\ny", None)):
        async with here.at_terminal(*note) as terminal:
            await terminal.shows("Approve this call? [y/n]")
            assert "Door sticks" in terminal.said
            terminal.type(f"{answer}\n")
            ended = await terminal.ended()
        assert ended.status == (1 if state else 0), ended.stderr
        assert json.loads(ended.stdout)["code"] == state
    assert _titles(here) == ["Kiln"]


@pytest.mark.parametrize("other", [["--enrich"], ["--crash-at", "after-park"], ["--no-vendor-key"]])
async def test_the_story_goes_with_no_option_of_another(agentic: Callable[..., Any], other: list[str]) -> None:
    ended = await agentic().run("demo", "--mcp", "--json", *other)
    assert ended.status == 2
    assert "--mcp is a story of its own" in ended.last["error"]
