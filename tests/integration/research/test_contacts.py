"""Finding an address, people and a company at Hunter, whose statuses are not what they seem and whose misses are free."""

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from agentic.local.providers.hunter import Hunter, Person
from agentic.local.providers.stand_in import Answer
from research_stage import KEYS, Vendors, research, served

FIND = "research.find_contact"
IDA = {"first_name": "Ida", "last_name": "Holm", "domain": "nordlys.example"}
PER = {"first_name": "Per", "last_name": "Dal", "domain": "nordlys.example"}
ADDRESS = Person(first_name="Ida", last_name="Holm", domain="nordlys.example", email="ida@nordlys.example")
TEST_KEY = replace(KEYS, hunter="test-api-key")


def hunter(*people: Person, **knobs: Any) -> Vendors:
    return Vendors(hunter=Hunter(str(KEYS.hunter), people=people, **knobs))


@pytest.mark.guarantee("M1")
@pytest.mark.parametrize("misses", [200, 404])
async def test_a_miss_keeps_the_person_answers_not_found_and_costs_nothing(database: str, misses: int) -> None:
    async with served(hunter(ADDRESS, answers_misses=misses)) as vendors:
        done = await research(database, vendors, FIND, PER)
    assert (done.data["verification"], done.data["email"]) == ("not_found", None)
    assert (done.data["first_name"], done.data["last_name"]) == ("Per", "Dal")
    assert [(line["quantity"], line["cost"], line["unit"]) for line in done.usage] == [(0, 0, "credit")]
    assert done.holds == ["settled"]


async def test_an_address_is_the_provider_s_own_with_its_state_and_its_word(database: str) -> None:
    async with served(
        hunter(replace(ADDRESS, email="i.h@nordlys.example", status="invalid", accept_all=True))
    ) as vendors:
        done = await research(database, vendors, FIND, IDA)
        assert vendors.hunter.used == 1
    assert (done.data["email"], done.data["verification"], done.data["provider_status"]) == (
        "i.h@nordlys.example",
        "unverifiable",
        "invalid",
    )
    assert done.data["checked_on"] == "2026-03-02"
    assert done.data["role_mailbox"] is False


async def test_a_role_mailbox_is_flagged_and_kept(database: str) -> None:
    async with served(hunter(replace(ADDRESS, email="info@nordlys.example"))) as vendors:
        done = await research(database, vendors, FIND, IDA)
    assert (done.data["email"], done.data["role_mailbox"]) == ("info@nordlys.example", True)


@pytest.mark.parametrize("status", [403, 202, 222, 500])
async def test_hunter_s_403_means_slow_down_and_its_202_still_looking(database: str, status: int) -> None:
    async with served(Vendors()) as vendors:
        vendors.hunter.then(Answer(status=status, json={"errors": []}))
        done = await research(database, vendors, FIND, IDA)
        assert len(vendors.hunter.requests) == 2
    assert (done.data["verification"], len(done.usage)) == ("verified", 1)


async def test_hunter_s_429_says_that_the_allowance_is_spent_and_is_not_asked_again_by_the_call(database: str) -> None:
    spent = Answer(status=429, json={"errors": [{"id": "too_many_requests", "code": 429, "details": "spent"}]})
    async with served(Vendors()) as vendors:
        vendors.hunter.then(*[spent] * 20)
        done = await research(database, vendors, FIND, IDA)
        assert len(vendors.hunter.requests) == len(done.spans)  # one a segment
    assert (done.state, done.error_code, done.raised) == ("failed", "crash_loop", {"BalanceSpent"})


async def test_a_person_who_asked_not_to_be_processed_is_left_alone_for_good(database: str) -> None:
    async with served(hunter(replace(ADDRESS, suppressed=True))) as vendors:
        done = await research(database, vendors, FIND, IDA)
        assert len(vendors.hunter.requests) == 1
    assert (done.code, done.usage, done.holds) == ("permission_refused", [], ["released"])
    assert '"remediation":"none"' in done.texts[0]


@pytest.mark.parametrize(
    ("status", "raised"), [(400, "RequestRefused"), (401, "CredentialRefused"), (422, "RequestRefused")]
)
async def test_a_bad_request_raises_and_never_reads_as_a_person_without_an_address(
    database: str, status: int, raised: str
) -> None:
    async with served(Vendors()) as vendors:
        vendors.hunter.then(*[Answer(status=status, json={"errors": []})] * 20)
        done = await research(database, vendors, FIND, IDA)
    assert (done.state, done.raised, done.usage) == ("failed", {raised}, [])


async def test_a_page_of_some_proxy_is_no_word_of_hunter_s_on_a_person(database: str) -> None:
    async with served(Vendors()) as vendors:
        vendors.hunter.then(*[Answer(status=404, body=b"<html>")] * 20)
        done = await research(database, vendors, FIND, IDA)
    assert (done.state, done.raised) == ("failed", {"AnswerUnreadable"})


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        (FIND, IDA),
        ("research.enrich_company", {"domain": "nordlys.example"}),
        ("research.discover_people", {"provider": "hunter", "company": "Nordlys", "domain": "nordlys.example"}),
    ],
)
async def test_a_client_that_makes_up_its_answers_asks_nobody_and_answers_nothing(
    database: str, tool: str, arguments: dict[str, Any]
) -> None:
    async with served(Vendors()) as vendors:
        done = await research(database, vendors, tool, arguments, keys=TEST_KEY)
        assert vendors.hunter.requests == []
    assert (done.state, done.raised, done.usage, set(done.holds)) == ("failed", {"DryRun"}, [], {"released"})


@pytest.mark.guarantee("M4")
@pytest.mark.parametrize("where", ["data", "envelope"])
async def test_an_answer_that_is_marked_as_made_up_is_neither_counted_nor_shown(database: str, where: str) -> None:
    data = {"email": "ida.holm@nordlys.example", "_dry_run": where == "data"}
    marked = Answer(json={"data": data, "_dry_run": where == "envelope"})
    async with served(Vendors()) as vendors:
        vendors.hunter.then(*[marked] * 20)
        done = await research(database, vendors, FIND, IDA)
    assert (done.state, done.raised, done.usage, set(done.holds)) == ("failed", {"DryRun"}, [], {"released"})
    assert all("ida.holm" not in text for text in done.texts)


@pytest.mark.guarantee("B2")
async def test_the_key_stands_in_no_url_and_is_taken_out_of_an_answer_that_echoes_it(database: str) -> None:
    async with served(hunter(replace(ADDRESS, position=f"knows {KEYS.hunter}"))) as vendors:
        done = await research(database, vendors, FIND, IDA)
        [request] = vendors.hunter.requests
    assert request.query.keys() == {"domain", "first_name", "last_name", "max_duration"}
    assert str(KEYS.hunter) not in str(done)
    assert done.data["position"] == "knows [redacted]"


async def test_a_company_that_hunter_knows_is_enriched_and_one_that_it_does_not_costs_nothing(database: str) -> None:
    async with served(Vendors()) as vendors:
        known = await research(database, vendors, "research.enrich_company", {"domain": "nordlys.example"})
        unknown = await research(database, vendors, "research.enrich_company", {"domain": "fjord.example"})
    assert (known.data["found"], known.data["name"], known.data["employees"]) == (True, "Nordlys", "11-50")
    assert [(line["quantity"], line["estimated"]) for line in known.usage] == [(Decimal("0.2"), True)]
    assert (unknown.data["found"], unknown.data["domain"], unknown.data["name"]) == (False, "fjord.example", None)
    assert [(line["quantity"], line["cost"]) for line in unknown.usage] == [(0, 0)]


async def test_discovery_asks_one_provider_and_answers_the_same_shape_whoever_it_was(database: str) -> None:
    persona = {"title": "Head of Platform", "seniority": "senior", "function": "it", "location": "Bergen"}
    at = {"company": "Nordlys", "domain": "nordlys.example", "persona": persona, "limit": 5}
    async with served(
        hunter(ADDRESS, Person(first_name="", last_name="", domain="nordlys.example", email="x@nordlys.example"))
    ) as vendors:
        by_hunter = await research(database, vendors, "research.discover_people", {"provider": "hunter", **at})
        assert vendors.exa.requests == []
        by_exa = await research(database, vendors, "research.discover_people", {"provider": "exa", **at})
        assert len(vendors.hunter.requests) == 1
        [asked], [searched] = vendors.hunter.requests, vendors.exa.requests
    assert asked.query == {
        "domain": "nordlys.example",
        "type": "personal",
        "limit": "5",
        "seniority": "senior",
        "department": "it",
    }
    assert searched.json["query"] == "Head of Platform of senior seniority in it at Nordlys (nordlys.example), Bergen"
    assert [each["name"] for each in by_hunter.data] == ["Ida Holm"]
    assert [each["name"] for each in by_exa.data] == ["Ida Holm", "Per Dal"]
    assert by_hunter.data[0].keys() == by_exa.data[0].keys()
    assert all("@" not in text for text in by_hunter.texts)  # an address comes from find_contact, with its state
    assert [(line["quantity"], line["unit"]) for line in by_hunter.usage] == [(1, "credit")]


async def test_a_domain_without_people_is_an_empty_list_that_costs_nothing(database: str) -> None:
    at = {"provider": "hunter", "company": "Fjord", "domain": "fjord.example"}
    async with served(Vendors()) as vendors:
        done = await research(database, vendors, "research.discover_people", at)
    assert done.data == []
    assert [(line["quantity"], line["cost"]) for line in done.usage] == [(0, 0)]


async def test_a_provider_that_the_deployment_has_no_account_with_is_unavailable(database: str) -> None:
    at = {"provider": "hunter", "company": "Nordlys", "domain": "nordlys.example"}
    async with served(Vendors()) as vendors:
        done = await research(database, vendors, "research.discover_people", at, keys=replace(KEYS, hunter=None))
        assert vendors.hunter.requests == []
    assert (done.code, done.usage, done.holds) == ("unavailable", [], ["released"])
