"""The stand-ins of the research vendors refuse what their vendors refuse, and do in turn what they are ordered to."""

import asyncio
import json
from decimal import Decimal
from typing import Any

import httpx
import pytest

from agentic.local.providers.exa import Exa
from agentic.local.providers.firecrawl import Firecrawl
from agentic.local.providers.hunter import Hunter
from agentic.local.providers.parallel import Parallel
from agentic.local.providers.stand_in import Answer, Hold, Lost, StandIn, StandInServer

KEY = "key-of-nobody"
ID = {"x-api-key": KEY}


def client(vendor: StandIn) -> httpx.AsyncClient:
    return httpx.AsyncClient(transport=httpx.ASGITransport(app=vendor), base_url="http://vendor.test")


@pytest.mark.parametrize(
    "field",
    ["startPublishedDate", "endPublishedDate", "includeText", "excludeText", "excludeDomains", "includeDomains"],
)
@pytest.mark.parametrize("category", ["people", "company"])
async def test_exa_refuses_a_filter_beside_a_category(category: str, field: str) -> None:
    async with client(Exa(KEY)) as exa:
        body = {"query": "x", "category": category, field: ["a.example"]}
        answer = await exa.post("/search", headers=ID, json=body)
    assert (answer.status_code, answer.json()["tag"]) == (400, "INVALID_REQUEST")


@pytest.mark.parametrize(("count", "cost"), [(0, 0.007), (10, 0.007), (20, 0.017)])
async def test_exa_charges_from_the_eleventh_result_on_and_shows_contents_when_asked(count: int, cost: float) -> None:
    pages = [{"id": str(n), "url": f"https://nordlys.example/{n}", "highlights": ["x"]} for n in range(count)]
    async with client(Exa(KEY, pages=pages)) as exa:
        answer = (await exa.post("/search", headers=ID, json={"query": "x", "numResults": 50})).json()
    assert answer["costDollars"]["total"] == cost
    assert all("highlights" not in each for each in answer["results"])


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"search_queries": ["x"], "max_results": 5}, "max_results"),
        ({"objective": "x"}, "search_queries"),
        ({"search_queries": []}, "search_queries"),
        ({"search_queries": ["x"] * 6}, "search_queries"),
        ({"search_queries": ["x" * 201]}, "search_queries"),
        ({"search_queries": ["x"], "advanced_settings": {"limit": 5}}, "limit"),
    ],
)
async def test_parallel_refuses_a_limit_at_the_top_and_a_search_without_queries(
    body: dict[str, Any], field: str
) -> None:
    async with client(Parallel(KEY)) as parallel:
        answer = await parallel.post("/v1/search", headers=ID, json=body)
    assert (answer.status_code, answer.json()["error"]["detail"]) == (422, {"field": field})


async def test_parallel_echoes_a_session_or_makes_one() -> None:
    async with client(Parallel(KEY)) as parallel:
        named = await parallel.post("/v1/search", headers=ID, json={"search_queries": ["x"], "session_id": "mine"})
        made = await parallel.post("/v1/search", headers=ID, json={"search_queries": ["x"]})
    assert named.json()["session_id"] == "mine"
    assert made.json()["session_id"]


async def test_firecrawl_serves_without_a_key_but_not_with_a_wrong_one_and_names_what_is_wrong() -> None:
    async with client(Firecrawl(KEY)) as firecrawl:
        without = await firecrawl.post("/v2/scrape", json={"url": "https://nordlys.example/"})
        wrong = await firecrawl.post("/v2/scrape", headers={"authorization": "Bearer other"}, json={"url": "x"})
        bad = await firecrawl.post("/v2/scrape", json={"url": "ftp://nordlys.example/", "timeout": 500})
    assert [each.status_code for each in (without, wrong, bad)] == [200, 401, 400]
    assert [each["path"] for each in bad.json()["details"]] == [["url"], ["timeout"]]


async def test_firecrawl_charges_more_for_some_pages_and_says_when_it_had_one_already() -> None:
    async with client(Firecrawl(KEY, unsupported=["closed.example"])) as firecrawl:

        async def scraped(url: str) -> httpx.Response:
            return await firecrawl.post("/v2/scrape", json={"url": url})

        first, second = await scraped("https://x.com/a"), await scraped("https://x.com/a")
        closed = await scraped("https://closed.example/")
    assert [each.json()["data"]["metadata"]["creditsUsed"] for each in (first, second)] == [30, 30]
    assert [each.json()["data"]["metadata"]["cacheState"] for each in (first, second)] == ["miss", "hit"]
    assert (closed.status_code, "code" in closed.json()) == (403, False)


async def test_hunter_takes_its_key_in_a_header_alone_and_counts_what_was_found() -> None:
    hunter = Hunter(KEY)
    ida = {"domain": "nordlys.example", "first_name": "Ida", "last_name": "Holm"}
    async with client(hunter) as asked:
        in_url = await asked.get("/v2/email-finder", params={**ida, "api_key": KEY})
        found = await asked.get("/v2/email-finder", headers=ID, params=ida)
        missed = await asked.get("/v2/email-finder", headers=ID, params={**ida, "first_name": "Per"})
        await asked.get("/v2/companies/find", headers=ID, params={"domain": "nordlys.example"})
        balance = await asked.get("/v2/account", headers=ID)
    assert (in_url.status_code, found.json()["data"]["email"]) == (400, "ida@nordlys.example")
    assert (missed.status_code, missed.json()["data"]["email"]) == (200, None)
    assert Decimal(str(balance.json()["data"]["requests"]["credits"]["used"])) == Decimal("1.2")


async def test_hunter_s_test_key_answers_the_same_whatever_is_asked_and_not_at_all_on_enrichment() -> None:
    headers = {"x-api-key": "test-api-key"}
    async with client(Hunter(KEY)) as hunter:
        one = await hunter.get("/v2/email-finder", headers=headers, params={"domain": "a.example"})
        other = await hunter.get("/v2/email-finder", headers=headers, params={"domain": "b.example"})
        enriched = await hunter.get("/v2/companies/find", headers=headers, params={"domain": "a.example"})
    assert one.json() == other.json()
    assert enriched.status_code == 401


@pytest.mark.parametrize("vendor", [Exa(KEY), Parallel(KEY), Firecrawl(KEY), Hunter(KEY)], ids=lambda each: each.name)
async def test_what_is_ordered_comes_in_turn_and_no_credential_is_kept(vendor: StandIn) -> None:
    hold = Hold()
    vendor.then(Answer(status=429, headers={"retry-after": "7"}), Lost(), hold)
    async with StandInServer(vendor) as server, httpx.AsyncClient(base_url=server.url, headers=ID) as asked:
        busy = await asked.post("/search", json={})
        with pytest.raises(httpx.TransportError):
            await asked.post("/search", json={})
        standing = asyncio.create_task(asked.post("/search", json={}))
        await hold.reached.wait()
        assert not standing.done()
        hold.release.set()
        await standing
    assert (busy.status_code, busy.headers["retry-after"]) == (429, "7")
    assert len(vendor.requests) == 3
    assert KEY not in json.dumps([dict(each.headers) for each in vendor.requests])
