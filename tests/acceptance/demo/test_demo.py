"""The demo as a person meets it: real processes, the command line's own output and exit status."""

import json
from collections.abc import Callable
from typing import Any

import pytest

pytestmark = pytest.mark.timeout(400)


def _tools(tree: dict[str, Any]) -> list[tuple[str, str]]:
    return [(span["name"], span["status"]) for span in tree["spans"] if span["kind"] == "tool"]


@pytest.mark.guarantee("A1", "D3")
async def test_a_person_at_the_terminal_approves_and_one_email_goes_out_from_another_process(
    agentic: Callable[..., Any],
) -> None:
    here = agentic()
    async with here.at_terminal("demo", "--json") as terminal:
        await terminal.shows("Approve this call? [y/n]")
        second = await here.run("demo", "--yes")
        assert second.status == 1
        assert "another demo is running in this database" in second.stderr
        terminal.type("perhaps\n")
        await terminal.shows("Approve this call? [y/n] perhaps\r\nApprove this call? [y/n]")
        terminal.type("y\n")
        ended = await terminal.ended()

    assert ended.status == 0, ended.stderr
    end = ended.last
    assert (end["status"], end["emails_sent"], end["approvals"], end["uncertain"]) == ("succeeded", 1, 1, 0)
    assert end["cost"] == "0"
    assert 0 < end["seconds_to_card"] < end["seconds"]
    assert "Stored by the mail provider" in ended.stderr
    processes = [line.split()[-1] for line in ended.stderr.splitlines() if "Worker" in line and "process" in line]
    assert len(set(processes)) == 2
    await here.workers_gone()

    shown = await here.run("runs", "show", end["run_id"], "--json")
    tree = json.loads(shown.stdout)
    assert _tools(tree) == [
        ("crm.search_people", "ok"),
        ("crm.upsert_company", "ok"),
        ("crm.add_to_list", "ok"),
        ("email.send", "ok"),  # asked, a pause and no failure
        ("email.send", "ok"),
    ]
    assert [approval["status"] for approval in tree["approvals"]] == ["approved"]


async def test_a_person_at_the_terminal_rejects_and_no_email_goes_out_and_all_is_well(
    agentic: Callable[..., Any],
) -> None:
    here = agentic()
    async with here.at_terminal("demo", "--json") as terminal:
        await terminal.shows("Approve this call? [y/n]")
        terminal.type("n\n")
        ended = await terminal.ended()
    assert ended.status == 0, ended.stderr
    assert "You rejected it; no email was sent." in ended.stderr
    end = ended.last
    assert (end["status"], end["emails_sent"], end["rejected"]) == ("succeeded", 0, True)
    assert not (here.folder / "mailbox.jsonl").exists()


@pytest.mark.guarantee("J1", "J7")
async def test_a_worker_killed_after_the_provider_accepted_is_followed_by_one_answered_under_the_same_key(
    agentic: Callable[..., Any], database: str
) -> None:
    here = agentic(DATABASE_URL=database)
    ended = await here.run("demo", "--yes", "--json", "--crash")
    assert ended.status == 0, ended.stderr
    end = ended.last
    assert (end["status"], end["emails_sent"], end["uncertain"]) == ("succeeded", 1, 0)
    assert (end["attempts"], end["answered_from_key"]) == (2, True)
    tree = json.loads((await here.run("runs", "show", end["run_id"], "--json")).stdout)
    assert _tools(tree)[-2:] == [("email.send", "lost"), ("email.send", "ok")]
    await here.workers_gone()


@pytest.mark.guarantee("J3")
async def test_without_a_vendor_key_the_unknown_outcome_waits_for_an_operator_who_settles_it(
    agentic: Callable[..., Any], database: str
) -> None:
    here = agentic(DATABASE_URL=database)
    ended = await here.run("demo", "--yes", "--json", "--crash", "--no-vendor-key")
    assert ended.status == 0, ended.stderr
    end = ended.last
    assert (end["status"], end["emails_sent"], end["uncertain"]) == ("succeeded", 1, 1)
    assert end["partial_reason"] == "outcome_unknown: email.send"
    assert "uncertain confirm" in ended.stderr

    listed = json.loads((await here.run("uncertain", "list", "--json")).stdout)
    reference = listed["uncertain"][0]["ref"] if isinstance(listed, dict) else listed[0]["ref"]
    settled = await here.run("uncertain", "confirm", reference, "--evidence", "it is in Sent")
    assert settled.status == 0, settled.stderr
    tree = json.loads((await here.run("runs", "show", end["run_id"], "--json")).stdout)
    assert tree["uncertain"] == []
    assert tree["effects"][-1]["kind"] == "confirmed"


@pytest.mark.guarantee("A2")
async def test_what_was_approved_after_a_demo_was_left_or_killed_is_carried_out_by_the_next(
    agentic: Callable[..., Any], database: str
) -> None:
    here = agentic(DATABASE_URL=database)
    async with here.at_terminal("demo", "--json") as terminal:
        await terminal.shows("Approve this call? [y/n]")
        terminal.type("\x04")  # end of input
        left = await terminal.ended()
    assert left.status == 1
    assert "Nothing was decided" in left.stderr
    assert left.last["status"] == "error"
    assert "standard input ended" in left.last["error"]
    assert left.last["run_id"]
    approval = next(line for line in left.stderr.splitlines() if "approvals approve" in line).split()[-3]
    assert (await here.run("approvals", "approve", approval)).status == 0

    async with here.at_terminal("demo") as terminal:
        await terminal.shows("Approve this call? [y/n]")
        terminal.kill()
        await terminal.ended()
    await here.workers_gone()

    again = await here.run("demo", "--yes", "--json")
    assert again.status == 0, again.stderr
    assert again.last["emails_sent"] == 1
    mailbox = (here.folder / "mailbox.jsonl").read_text().splitlines()
    runs = [json.loads(line)["message"]["content"]["metadata"]["run_id"] for line in mailbox]
    assert len(runs) == len(set(runs)) == 2
