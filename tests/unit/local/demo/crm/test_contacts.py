import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentic.local.demo.crm.contacts import Company, Contact, fold, group_companies, merge_contacts

PER = Contact(name="Per Hansen", email="per@fjord.example", company="Fjord AS")


def test_the_same_email_is_the_same_person_and_the_earlier_row_wins() -> None:
    later = Contact(name="P. Hansen", email="per@fjord.example", city="Bergen", company="Other")
    kept, merged = merge_contacts([PER, later])
    assert kept == [Contact(name="Per Hansen", email="per@fjord.example", company="Fjord AS", city="Bergen")]
    assert merged == 1


@pytest.mark.parametrize("emails", [("per@fjord.example", None), (None, "per@fjord.example"), (None, None)])
def test_the_same_name_and_company_is_the_same_person_when_an_email_is_missing(
    emails: tuple[str | None, str | None],
) -> None:
    rows = [
        Contact(name="Søren Ås", email=emails[0], company="Fjord AS"),
        Contact(name="SØREN  ås", email=emails[1], company="fjord as"),
    ]
    kept, merged = merge_contacts(rows)
    assert (len(kept), merged) == (1, 1)
    assert kept[0].email == (emails[0] or emails[1])


def test_the_same_name_with_two_emails_or_without_a_company_stays_two_people() -> None:
    rows = [PER, Contact(name="Per Hansen", email="per2@fjord.example", company="Fjord AS")]
    assert merge_contacts(rows) == (rows, 0)
    nameless = [Contact(name="Per Hansen"), Contact(name="Per Hansen")]
    assert merge_contacts(nameless) == (nameless, 0)


people = st.builds(
    Contact,
    name=st.sampled_from(["Ann", "ANN", "Bo"]),
    email=st.sampled_from([None, "a@x.example", "b@x.example"]),
    company=st.sampled_from([None, "X", "Y"]),
    domain=st.sampled_from([None, "x.example", "y.example"]),
)


@given(st.lists(people, max_size=12))
def test_merging_loses_no_row_no_email_and_leaves_nothing_to_merge_by_email(rows: list[Contact]) -> None:
    kept, merged = merge_contacts(rows)
    emails = [contact.email for contact in kept if contact.email]
    assert len(kept) + merged == len(rows)
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
