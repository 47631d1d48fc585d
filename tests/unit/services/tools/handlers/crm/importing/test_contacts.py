import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentic.services.tools.handlers.crm.canonical import fold
from agentic.services.tools.handlers.crm.importing.contacts import Company, Contact, group_companies, merge_contacts


def merged(rows: list[Contact]) -> tuple[list[Contact], int]:
    """Each person once, and how many rows were merged into an earlier one."""
    kept, companies = merge_contacts(rows, group_companies(rows)[1])
    assert len(companies) == len(kept)
    return kept, len(rows) - len(kept)


PER = Contact(name="Per Hansen", email="per@fjord.example", company="Fjord AS")


def test_the_same_email_is_the_same_person_and_the_earlier_row_wins() -> None:
    later = Contact(name="P. Hansen", email="per@fjord.example", city="Bergen", company="Other")
    kept, count = merged([PER, later])
    assert kept == [Contact(name="Per Hansen", email="per@fjord.example", company="Fjord AS", city="Bergen")]
    assert count == 1


@pytest.mark.parametrize("emails", [("per@fjord.example", None), (None, "per@fjord.example"), (None, None)])
def test_the_same_name_and_company_is_the_same_person_when_an_email_is_missing(
    emails: tuple[str | None, str | None],
) -> None:
    rows = [
        Contact(name="Søren Ås", email=emails[0], company="Fjord AS"),
        Contact(name="SØREN  ås", email=emails[1], company="fjord as"),
    ]
    kept, count = merged(rows)
    assert (len(kept), count) == (1, 1)
    assert kept[0].email == (emails[0] or emails[1])


def test_the_same_name_with_two_emails_stays_two_people() -> None:
    rows = [PER, Contact(name="Per Hansen", email="per2@fjord.example", company="Fjord AS")]
    assert merged(rows) == (rows, 0)


def test_a_name_without_a_company_is_one_person_among_those_without_an_email_and_nobody_with_one() -> None:
    nameless = [Contact(name="Per Hansen"), Contact(name="PER Hansen", city="Bergen")]
    assert merged(nameless) == ([Contact(name="Per Hansen", city="Bergen")], 1)
    rows = [Contact(name="Per Hansen", email="per@fjord.example"), Contact(name="Per Hansen")]
    assert merged(rows) == (rows, 0)


def test_the_company_that_a_later_row_names_is_the_persons_and_merges_the_rows_after_it() -> None:
    rows = [
        Contact(name="Per Hansen", email="per@fjord.example"),
        Contact(name="Per Hansen", email="per@fjord.example", company="Fjord AS"),
        Contact(name="Per Hansen", company="FJORD AS", city="Bergen"),
    ]
    kept, companies = merge_contacts(rows, group_companies(rows)[1])
    assert kept == [Contact(name="Per Hansen", email="per@fjord.example", company="Fjord AS", city="Bergen")]
    assert companies == [0]


people = st.builds(
    Contact,
    name=st.sampled_from(["Ann", "ANN", "Bo"]),
    email=st.sampled_from([None, "a@x.example", "b@x.example"]),
    company=st.sampled_from([None, "X", "Y"]),
    domain=st.sampled_from([None, "x.example", "y.example"]),
)


@given(st.lists(people, max_size=12))
def test_merging_loses_no_row_no_email_and_leaves_nothing_to_merge_by_email(rows: list[Contact]) -> None:
    kept, count = merged(rows)
    emails = [contact.email for contact in kept if contact.email]
    assert len(kept) + count == len(rows)
    assert sorted(emails) == sorted({contact.email for contact in rows if contact.email})


@given(st.lists(people, max_size=12))
def test_every_contact_belongs_to_the_company_of_its_domain_and_domains_are_unique(rows: list[Contact]) -> None:
    companies, memberships = group_companies(rows)
    domains = [company.domain for company in companies if company.domain]
    unnamed = [fold(company.name) for company in companies if company.domain is None]
    assert len(domains) == len(set(domains))
    assert len(unnamed) == len(set(unnamed))
    for contact, position in zip(rows, memberships, strict=True):
        assert (position is None) == (contact.company is None)
        if position is not None and contact.domain:
            assert companies[position].domain == contact.domain


def test_companies_join_by_domain_first_and_by_name_while_a_domain_is_missing() -> None:
    rows = [
        Contact(name="a", company="Nordlys"),
        Contact(name="b", company="NORDLYS", domain="nordlys.example"),
        Contact(name="c", company="Nordlys AS", domain="nordlys.example"),
        Contact(name="d", company="nordlys as"),
        Contact(name="e", company="Nordlys", domain="other.test"),
        Contact(name="f"),
    ]
    companies, memberships = group_companies(rows)
    assert companies == [
        Company(name="Nordlys", domain="nordlys.example"),
        Company(name="Nordlys", domain="other.test"),
    ]
    assert memberships == [0, 0, 0, 0, 1, None]


@pytest.mark.parametrize(
    ("text", "folded"), [("Łukasz  MÜLLER", "lukasz muller"), ("Ås", "as"), ("Weiß", "weiss"), ("Søren", "soren")]
)
def test_folding_removes_case_accents_and_extra_blanks(text: str, folded: str) -> None:
    assert fold(text) == folded
