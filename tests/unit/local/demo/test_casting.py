"""Whom the demo's story is about, and what the rehearsal makes of a history."""

import json
from typing import Any

import pytest

from agentic.local.demo.agent import NobodyToWrite, pick_target, task
from agentic.local.demo.casting import SAMPLE
from agentic.local.demo.rehearsal import rehearsal
from agentic.local.demo.settings import Target
from agentic.runtime.agent.script import Calls, Say, SeenMessage
from agentic.services.tools.handlers.crm.importing import Contact, ImportReport, load_contacts

TARGET = Target(name="Per Hansen", email="per@fjord.example", company="Fjord Analytics AS", domain="fjord.example")


def _report(*contacts: Contact) -> ImportReport:
    return ImportReport(
        contacts=contacts,
        companies=(),
        memberships=(None,) * len(contacts),
        rows=len(contacts),
        merged=0,
        missing_email=0,
        repaired=0,
        bad=(),
        emptied=(),
        encoding="utf-8",
        delimiter="comma",
    )


def test_the_shipped_contacts_give_a_story() -> None:
    assert pick_target(load_contacts(SAMPLE), SAMPLE.name) == TARGET
    assert "Per Hansen" in task(TARGET)


def test_somebody_with_an_email_and_a_company_is_preferred() -> None:
    contacts = (
        Contact(name="Aoife Byrne", company="Claddagh & Sons"),
        Contact(name="Mei Lin", email="mei.lin@lotus.example"),
        Contact(name="Tom Ashworth", email="tom@harbourlight.example", company="Harbourlight Ltd"),
    )
    assert pick_target(_report(*contacts), "c.csv").name == "Tom Ashworth"
    assert pick_target(_report(*contacts[:2]), "c.csv").company == "lotus.example"


def test_contacts_without_any_email_are_refused_with_the_remedy() -> None:
    with pytest.raises(NobodyToWrite, match=r"c\.csv: no contact has a usable email"):
        pick_target(_report(Contact(name="Aoife Byrne")), "c.csv")


def _tool(name: str, answer: Any) -> SeenMessage:
    return SeenMessage(role="tool", text=json.dumps(answer), call_id="c", tool_name=name)


def test_the_rehearsal_uses_the_id_that_the_search_found() -> None:
    people = [{"id": "id-1", "email": "other@fjord.example"}, {"id": "id-2", "email": TARGET.email}]
    history = [_tool("crm_search_people", {"ok": True, "external": {"data": people}})]
    turn = rehearsal(TARGET).script[1]
    assert callable(turn)
    said = turn(history)
    assert isinstance(said, Calls)
    assert dict(said.calls[1].arguments)["person_ids"] == ["id-2"]  # type: ignore[arg-type]


def test_the_rehearsal_stops_when_the_search_finds_nobody() -> None:
    turn = rehearsal(TARGET).script[1]
    assert callable(turn)
    assert isinstance(turn([_tool("crm_search_people", {"ok": True, "data": []})]), Say)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ({"ok": True, "external": {"data": {}}}, "was sent"),
        ({"status": "uncertain", "reason_code": "outcome_unknown"}, "not known"),
        ({"status": "denied", "reason_code": "rejected", "message": "A person said no."}, "A person said no."),
    ],
)
def test_the_rehearsal_reports_what_became_of_the_email(answer: dict[str, Any], words: str) -> None:
    turn = rehearsal(TARGET).script[3]
    assert callable(turn)
    said = turn([_tool("email_send", answer)])
    assert isinstance(said, Say)
    assert words in said.text
