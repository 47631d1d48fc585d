"""Searching the web, people and companies: what is an answer, what is a failure, and what is somebody's to repair."""

import json
from typing import Any

import pytest

from agentic.local.providers.exa import Exa
from agentic.local.providers.parallel import Parallel
from agentic.local.providers.stand_in import Answer, Hold, Lost
from agentic.runtime.agent.script import Turn
from agentic.services.tools.handlers.research import ResearchPrices
from agentic.services.tools.handlers.research.exa import EXA
from agentic.services.tools.handlers.research.search_web import search_web
from agentic.services.tools.handlers.research.vendor import Account
from agentic.services.tools.handlers.retries import RetryBudget
from agentic.testing import Call, Calls, Say, harness
from research_stage import KEYS, Vendors, research, served, told

WEB: tuple[str, dict[str, Any]] = ("research.search_web", {"query": "tide sensors"})
COMPANY = ("research.search_company", {"objective": "What does Nordlys make?", "queries": ["nordlys products"]})
BUSY = Answer(status=429, json={"error": "slow down"})  # no tag, as it was seen


@pytest.mark.guarantee("J6", "M1")
async def test_a_valid_empty_exa_response_is_distinct_from_an_exhausted_retryable_failure(database: str) -> None:
    exa = Exa(str(KEYS.exa), pages=())
    async with served(Vendors(exa=exa)) as vendors:
        empty = await research(database, vendors, *WEB)
        exa.then(BUSY, BUSY, BUSY)
        failed = await research(database, vendors, *WEB)
        assert len(exa.requests) == 4
    assert (empty.data, len(empty.usage), empty.holds) == ([], 1, ["settled"])
    assert (failed.code, failed.usage, failed.holds) == ("retryable_upstream", [], ["released"])
    assert "slow down" in failed.texts[0]
    assert failed.state == "succeeded"  # the model goes on with what it has


@pytest.mark.parametrize(
    "lost", [Lost(), Answer(status=503, json={"tag": "SERVICE_OVERLOADED"}), Answer(status=502, body=b"<html>")]
)
async def test_a_vendor_that_comes_back_within_the_budget_is_one_answer_and_one_row(
    database: str, lost: Answer | Lost
) -> None:
    async with served(Vendors()) as vendors:
        vendors.exa.then(lost, lost)
        done = await research(database, vendors, *WEB)
        bodies = {request.raw for request in vendors.exa.requests}
    assert [page["title"] for page in done.data] == ["Tide sensors"]
    assert len(done.usage) == 1
    assert len(bodies) == 1


@pytest.mark.guarantee("J6")
async def test_a_connection_that_is_lost_each_time_is_a_retryable_failure_and_writes_no_row(database: str) -> None:
    async with served(Vendors()) as vendors:
        vendors.exa.then(Lost(), Lost(), Lost())
        done = await research(database, vendors, *WEB)
        assert len(vendors.exa.requests) == 3
    assert (done.code, done.usage, done.holds) == ("retryable_upstream", [], ["released"])


@pytest.mark.guarantee("J6")
async def test_a_vendor_that_stays_silent_is_told_as_such_before_the_call_itself_times_out(database: str) -> None:
    silent, prices = Hold(), ResearchPrices()
    async with served(Vendors()) as vendors:
        vendors.exa.then(silent, silent)
        budget = RetryBudget(attempts=2, attempt_timeout_s=0.2, backoff_s=0)
        account = Account(vendor=EXA, origin=vendors.origins.exa, key=str(KEYS.exa), retries=budget)
        script: list[Turn] = [Calls([Call(*WEB)]), Say("Done.")]
        async with harness(tools=[search_web(account, prices)], script=script, database_url=database) as h:
            done = await told(h, await h.start())
    assert (done.code, done.usage, done.holds) == ("retryable_upstream", [], ["released"])


async def test_a_vendor_that_asks_for_longer_than_the_budget_is_not_waited_for(database: str) -> None:
    async with served(Vendors()) as vendors:
        vendors.exa.then(Answer(status=429, json={"error": "slow down"}, headers={"retry-after": "60"}))
        done = await research(database, vendors, *WEB)
        assert len(vendors.exa.requests) == 1
    assert (done.code, done.usage) == ("retryable_upstream", [])


@pytest.mark.guarantee("M1")
@pytest.mark.parametrize(
    ("answer", "raised", "hold"),
    [
        (Answer(status=401, json={"error": "no", "tag": "INVALID_API_KEY"}), "CredentialRefused", "released"),
        (Answer(status=402, json={"error": "no", "tag": "NO_MORE_CREDITS"}), "BalanceSpent", "released"),
        (Answer(status=400, json={"error": "no", "tag": "INVALID_REQUEST"}), "RequestRefused", "released"),
        (Answer(status=200, body=b"<html>"), "AnswerUnreadable", "held"),
        (Answer(status=200, json={"results": [{"title": "no address"}]}), "AnswerUnreadable", "held"),
        (Answer(status=302, json={}, headers={"location": "https://elsewhere.example/"}), "AnswerUnreadable", "held"),
    ],
)
async def test_a_fault_of_credential_money_request_or_answer_raises_and_says_which(
    database: str, answer: Answer, raised: str, hold: str
) -> None:
    """A spent balance at the vendor is never our own ceiling: the run fails, it does not end as one that used its budget.

    What may have been charged stays held until its lease is over; what surely was not is given back.
    """
    async with served(Vendors()) as vendors:
        vendors.exa.then(*[answer] * 20)
        done = await research(database, vendors, *WEB)
    assert (done.state, done.error_code) == ("failed", "crash_loop")
    assert done.raised == {raised}
    assert (done.usage, set(done.holds)) == ([], {hold})


@pytest.mark.guarantee("B2")
async def test_a_key_that_a_vendor_quotes_in_a_refusal_reaches_nobody(
    database: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with served(Vendors()) as vendors:
        vendors.exa.then(*[Answer(status=429, json={"error": f"the key {KEYS.exa} is over its limit"})] * 3)
        done = await research(database, vendors, *WEB)
    assert "over its limit" in done.texts[0]
    assert str(KEYS.exa) not in str(done)
    assert str(KEYS.exa) not in caplog.text


async def test_what_exa_will_not_look_for_is_unavailable_and_no_fault_of_the_key(database: str) -> None:
    async with served(Vendors()) as vendors:
        vendors.exa.then(Answer(status=403, json={"error": "no", "tag": "PROHIBITED_CONTENT"}))
        done = await research(database, vendors, *WEB)
    assert (done.code, done.usage) == ("unavailable", [])


async def test_the_filters_of_a_web_search_reach_exa_and_a_search_for_people_sends_none(database: str) -> None:
    """With a category Exa refuses dates and domains."""
    filters = {
        "include_domains": ["nordlys.example"],
        "exclude_domains": ["fjord.example"],
        "published_after": "2026-01-31",
    }
    async with served(Vendors()) as vendors:
        await research(database, vendors, "research.search_web", {"query": "tides", "limit": 3, **filters})
        people = await research(database, vendors, "research.search_people", {"query": "platform people in Bergen"})
        web, of_people = (request.json for request in vendors.exa.requests)
    assert (web["numResults"], web["includeDomains"], web["excludeDomains"]) == (
        3,
        ["nordlys.example"],
        ["fjord.example"],
    )
    assert web["startPublishedDate"] == "2026-01-31T00:00:00.000Z"
    assert "category" not in web
    assert of_people.keys() == {"query", "type", "category", "numResults", "contents"}
    known, unknown = people.data
    assert (known["name"], known["title"], known["company"], known["location"]) == (
        "Ida Holm",
        "Head of Platform",
        "Nordlys",
        "Bergen",
    )
    assert (unknown["name"], unknown["title"], unknown["company"]) == ("Per Dal", None, None)


async def test_a_search_answers_ten_results_at_most_however_many_come(database: str) -> None:
    pages = [{"id": str(n), "url": f"https://nordlys.example/{n}"} for n in range(14)]
    async with served(Vendors()) as vendors:
        vendors.exa.then(Answer(json={"results": pages, "costDollars": {"total": 0.007}}))
        done = await research(database, vendors, *WEB)
    assert [page["id"] for page in done.data] == [str(n) for n in range(10)]
    assert json.loads(done.texts[0])["meta"]["truncated"] is True


@pytest.mark.guarantee("T2")
@pytest.mark.parametrize(
    "arguments",
    [
        {"query": "tides", "limit": 11},
        {"query": ""},
        {"query": "tides", "include_domains": ["https://nordlys.example"]},
    ],
)
async def test_arguments_that_would_cost_more_or_mean_nothing_reach_no_vendor(
    database: str, arguments: dict[str, Any]
) -> None:
    async with served(Vendors()) as vendors:
        done = await research(database, vendors, "research.search_web", arguments)
        assert vendors.exa.requests == []
    assert (done.code, done.usage, done.holds) == ("invalid_input", [], [])


async def test_parallel_gets_its_limit_where_it_takes_one_and_answers_the_pages_of_a_company(database: str) -> None:
    async with served(Vendors()) as vendors:
        done = await research(database, vendors, COMPANY[0], {**COMPANY[1], "limit": 4})
        [request] = vendors.parallel.requests
    assert request.json["advanced_settings"]["max_results"] == 4
    assert request.json["search_queries"] == ["nordlys products"]
    assert done.data == [
        {
            "url": "https://nordlys.example/about",
            "title": "About Nordlys",
            "published": "2026-02-11",
            "excerpts": ["Nordlys builds tide sensors in Bergen."],
        }
    ]


async def test_parallel_s_own_headers_say_when_and_whether_to_ask_again(database: str) -> None:
    async with served(Vendors(parallel=Parallel(str(KEYS.parallel), counts=False))) as vendors:
        vendors.parallel.then(Answer(status=429, json={}, headers={"retry-after-ms": "1"}))
        again = await research(database, vendors, *COMPANY)
        vendors.parallel.then(Answer(status=500, json={}, headers={"x-should-retry": "false"}))
        never = await research(database, vendors, *COMPANY)
        assert len(vendors.parallel.requests) == 3
    assert len(again.usage) == 1
    assert (never.code, never.usage) == ("unavailable", [])


async def test_a_spent_balance_at_parallel_is_no_budget_of_ours(database: str) -> None:
    words = Answer(status=402, json={"error": {"message": "balance too low"}})
    async with served(Vendors()) as vendors:
        vendors.parallel.then(*[words] * 20)
        done = await research(database, vendors, *COMPANY)
    assert (done.state, done.error_code, done.raised) == ("failed", "crash_loop", {"BalanceSpent"})
