"""What may be said of a company or a person."""

import pytest
from pydantic import ValidationError

from agentic.services.tools.handlers.crm.facts import CompanyFacts, PersonFacts, said


def test_texts_come_in_their_canonical_form() -> None:
    facts = PersonFacts(
        name="  Per \u00a0 Hansen ", email="PER@Fjord.example", notes="a\r\nb ", phone=" +47 (0) 555-01 "
    )
    assert facts.name == "Per Hansen"
    assert facts.email == "per@fjord.example"
    assert facts.notes == "a\nb"
    assert facts.phone == "+47 (0) 555-01"
    assert CompanyFacts(name="Fjord", domain="https://www.Fjord.example/en").domain == "fjord.example"


@pytest.mark.parametrize("blank", ["", "  ", "\t\n"])
def test_what_is_blank_says_nothing(blank: str) -> None:
    person = PersonFacts(name="Per", email=blank, job_title=blank, notes=blank, linkedin_url=blank)
    assert said(person, "email", "job_title", "notes", "linkedin_url", "city") == {}
    assert said(CompanyFacts(name="Fjord", domain=blank, industry="Data"), "domain", "industry") == {"industry": "Data"}


@pytest.mark.parametrize("name", ["", "  ", "\u200b", "\u0301", "x" * 201])
def test_a_name_has_a_letter_and_an_end(name: str) -> None:
    with pytest.raises(ValidationError):
        CompanyFacts(name=name)


@pytest.mark.parametrize("field", [{"email": "at reception"}, {"company_id": "fjord"}, {"notes": "x" * 4001}])
def test_what_cannot_be_meant_is_refused_and_not_dropped(field: dict[str, str]) -> None:
    with pytest.raises(ValidationError):
        PersonFacts.model_validate({"name": "Per", **field})
    with pytest.raises(ValidationError):
        CompanyFacts(name="Fjord", domain="see notes")
