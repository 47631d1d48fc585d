"""The demo of work that a provider finishes later: real processes, a signed callback over HTTP, and what is left to read of it."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.timeout(400)


async def _told(here: Any, *arguments: str) -> Any:
    """What a command answers as JSON."""
    answered = await here.run(*arguments, "--json")
    assert answered.status == 0, answered.stderr
    return json.loads(answered.stdout)


@pytest.mark.guarantee("W1", "M1")
async def test_a_job_is_submitted_reported_twice_settled_once_and_its_run_finished_by_another_process(
    agentic: Callable[..., Any], database: str
) -> None:
    here = agentic(DATABASE_URL=database)
    for time in range(2):  # in one folder and one database
        ended = await here.run("demo", "--enrich", "--yes", "--json")
        assert ended.status == 0, ended.stderr
        end = ended.last
        assert (end["status"], end["jobs"], end["job_state"], end["parked"]) == ("succeeded", 1, "completed", True)
        assert (end["callbacks"], end["usage_lines"], end["emails"], end["uncertain"]) == (2, 1, 0, 0)
        assert (end["found"], end["job_cost"], end["cost"]) == (2, "0.10", "0.10")
        workers = [line.split()[-1] for line in ended.stderr.splitlines() if "Worker" in line and "process" in line]
        assert len(set(workers)) == 3
        said = ended.stderr
        steps = ["The run is parked on its job", "Signed callback", "The same callback once more", "settled once"]
        assert [said.index(step) for step in steps] == sorted(said.index(step) for step in steps)
        await here.workers_gone()

        shown = await _told(here, "runs", "show", end["run_id"])
        assert "2 of 3 work addresses were found" in shown["run"]["answer"]
        drops = await _told(here, "jobs", "drops")
        assert {drop["reason"] for drop in drops} == {"duplicate"}
        assert sum(drop["drops"] for drop in drops) == time + 1


async def test_contacts_without_any_email_are_enough_and_the_next_story_in_the_folder_sends_its_email(
    agentic: Callable[..., Any], database: str, tmp_path: Path
) -> None:
    here = agentic(DATABASE_URL=database)
    csv = tmp_path / "contacts.csv"
    csv.write_text("full_name,email,company,domain\nAda Birk,,Birk & Co,birk.example\n", encoding="utf-8")
    ended = await here.run("demo", "--enrich", "--yes", "--json", "--csv", str(csv))
    assert ended.status == 0, ended.stderr
    assert (ended.last["found"], ended.last["job_cost"], ended.last["emails"]) == (1, "0.05", 0)
    email = await here.run("demo", "--yes", "--json")
    assert email.status == 0, email.stderr
    assert email.last["emails_sent"] == 1


async def test_a_rejected_batch_is_not_submitted_and_all_is_well(agentic: Callable[..., Any]) -> None:
    here = agentic()
    async with here.at_terminal("demo", "--enrich", "--json") as terminal:
        await terminal.shows("Approve this call? [y/n]")
        terminal.type("n\n")
        ended = await terminal.ended()
    assert ended.status == 0, ended.stderr
    end = ended.last
    assert (end["status"], end["jobs"], end["usage_lines"], end["rejected"]) == ("succeeded", 0, 0, True)
    assert "You rejected it; nobody was looked up." in ended.stderr
