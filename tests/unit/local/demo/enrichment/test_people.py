"""Whom the story of later answers is about, and what its rehearsal makes of a history."""

import json

import pytest

from agentic.local.demo.casting import SAMPLE
from agentic.local.demo.enrichment.agent import rehearsal, task
from agentic.local.demo.enrichment.people import NobodyToFind, require_somebody, sought
from agentic.runtime.agent.script import Calls, Say, SeenMessage
from agentic.services.tools.handlers.crm.importing import Contact, load_contacts

ADA = Contact(name="Ada Maria Birk", company="Birk & Co", domain="birk.example")


def test_the_shipped_contacts_give_three_people_to_look_up() -> None:
    people = sought(load_contacts(SAMPLE).contacts)
    assert [person.ref for person in people] == ["contact-1", "contact-2", "contact-3"]
    assert all(person.name in task(people) for person in people)


def test_only_people_without_an_email_who_can_be_looked_up_are_chosen() -> None:
    contacts = (
        Contact(name="Per Hansen", email="per@fjord.example", company="Fjord"),
        Contact(name="Cher", company="Lotus"),
        Contact(name="Ida Holm"),
        Contact(name="Mei Lin", company="Lotus"),
        ADA,
    )
    mei, ada = sought(contacts)
    assert mei.arguments == {"ref": "contact-1", "first_name": "Mei", "last_name": "Lin", "company_name": "Lotus"}
    assert ada.arguments == {
        "ref": "contact-2",
        "first_name": "Ada",
        "last_name": "Maria Birk",
        "domain": "birk.example",
    }


def test_contacts_with_nobody_to_look_up_are_refused_with_what_they_lack() -> None:
    with pytest.raises(NobodyToFind, match=r"mine\.csv: no contact without an email"):
        require_somebody(sought([Contact(name="Cher", company="Lotus")]), "mine.csv")


def _told(tool: str, answer: object) -> list[SeenMessage]:
    return [SeenMessage(role="tool", text=json.dumps(answer) + "\nmore", tool_name=tool)]


def test_the_rehearsal_collects_the_job_it_was_told_of_and_says_what_was_found() -> None:
    submit, collect, report = rehearsal(sought([ADA])).script
    assert callable(submit)
    assert callable(collect)
    assert callable(report)
    begun = submit([])
    assert isinstance(begun, Calls)
    assert begun.calls[0].arguments == {"contacts": [sought([ADA])[0].arguments]}
    answer = {"ok": True, "external": {"data": {"job_id": "j-1", "accepted": True}}}
    collected = collect(_told("fullenrich_submit", answer))
    assert isinstance(collected, Calls)
    assert collected.calls[0].arguments == {"job_id": "j-1"}
    lines = [{"ref": "a", "email": "ada@birk.example"}, {"ref": "b", "email": None}]
    end = report(_told("fullenrich_collect", {"external": {"data": {"state": "completed", "results": lines}}}))
    assert end == Say("1 of 2 work addresses were found: ada@birk.example.")


def test_the_rehearsal_gives_up_what_a_person_rejected() -> None:
    collect = rehearsal(sought([ADA])).script[1]
    assert callable(collect)
    said = collect(_told("fullenrich_submit", {"ok": False, "message": "A person rejected the call."}))
    assert said == Say("Nobody was looked up: A person rejected the call.")
