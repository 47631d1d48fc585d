"""Each research call writes one line of usage, from what its vendor reported, and cannot pass the run's ceiling."""

from decimal import Decimal
from typing import Any

import pytest

from agentic.local.providers.exa import Exa
from agentic.local.providers.stand_in import Answer
from agentic.runtime.agent.script import Turn
from agentic.testing import Call, Calls, Say, harness
from money import FREE, ceiling
from research_stage import KEYS, SITE, Vendors, research, served, told

PERSON = {"first_name": "Ida", "last_name": "Holm", "domain": "nordlys.example"}
AT_NORDLYS = {"company": "Nordlys", "domain": "nordlys.example"}
EVERY_TOOL: list[tuple[str, dict[str, Any], str, str, str, str]] = [
    ("research.search_web", {"query": "tide sensors"}, "Exa", "request", "1", "0.007"),
    ("research.search_people", {"query": "heads of platform"}, "Exa", "request", "1", "0.007"),
    (
        "research.search_company",
        {"objective": "What is it?", "queries": ["nordlys"]},
        "Parallel",
        "request",
        "1",
        "0.005",
    ),
    ("research.scrape_page", {"url": SITE}, "Firecrawl", "credit", "1", "0.004"),
    ("research.discover_people", {"provider": "exa", **AT_NORDLYS}, "Exa", "request", "1", "0.007"),
    ("research.discover_people", {"provider": "hunter", **AT_NORDLYS}, "Hunter", "credit", "1", "0.02"),
    ("research.find_contact", PERSON, "Hunter", "credit", "1", "0.02"),
    ("research.enrich_company", {"domain": "nordlys.example"}, "Hunter", "credit", "0.2", "0.004"),
]


@pytest.mark.guarantee("M1", "M3")
@pytest.mark.parametrize(("tool", "arguments", "provider", "unit", "quantity", "cost"), EVERY_TOOL)
async def test_one_successful_vendor_response_writes_one_row_and_its_id_reaches_the_tool_span(
    database: str, tool: str, arguments: dict[str, Any], provider: str, unit: str, quantity: str, cost: str
) -> None:
    async with served(Vendors()) as vendors:
        done = await research(database, vendors, tool, arguments)
        assert sum(len(each.requests) for each in vendors.all.values()) == 1
    assert done.state == "succeeded"
    assert done.data
    [line] = done.usage
    assert (line["provider"], line["item"], line["unit"]) == (provider, tool, unit)
    assert (line["quantity"], line["cost"]) == (Decimal(quantity), Decimal(cost))
    [span] = done.spans
    assert span["attributes"]["usage.id"] == str(line["id"])
    assert line["span_id"] == span["id"]
    assert done.holds == ["settled"]


@pytest.mark.guarantee("M2", "D3")
async def test_a_metered_vendor_call_reaches_the_usage_meter_and_the_accrual_checkpoint(database: str) -> None:
    twice: list[Turn] = [
        Calls([Call("research.search_web", {"query": "tide sensors"})]),
        Calls([Call("research.search_web", {"query": "wave sensors"})]),
        Say("Done."),
    ]
    async with (
        served(Vendors()) as vendors,
        harness(tools=vendors.tools(), script=twice, database_url=database, ceilings=ceiling("0.013"), usage=FREE) as h,
    ):
        done = await told(h, await h.start())
        assert len(vendors.exa.requests) == 1
    assert (done.state, done.partial_reason) == ("succeeded", "budget_exhausted")
    assert [line["cost"] for line in done.usage] == [Decimal("0.007")]
    assert [span["code"] for span in done.spans] == [None, "budget_exhausted"]


@pytest.mark.guarantee("M1")
async def test_an_amount_that_exa_named_counts_as_it_is_and_one_that_it_left_out_is_estimated(database: str) -> None:
    exa = Exa(str(KEYS.exa), names_costs=False)
    async with served(Vendors(exa=exa)) as vendors:
        guessed = await research(database, vendors, "research.search_web", {"query": "tides"})
        exa.names_costs = True
        exa.then(Answer(json={"results": [], "costDollars": {"total": 0.0012}}))
        named = await research(database, vendors, "research.search_web", {"query": "tides"})
    assert [(line["cost"], line["estimated"]) for line in guessed.usage] == [(Decimal("0.007"), True)]
    assert [(line["cost"], line["estimated"]) for line in named.usage] == [(Decimal("0.0012"), False)]


@pytest.mark.parametrize("total", [b"NaN", b"-1", b'"free"', b"true", b"null", b"Infinity"])
async def test_an_amount_that_is_none_is_estimated(database: str, total: bytes) -> None:
    async with served(Vendors()) as vendors:
        vendors.exa.then(Answer(body=b'{"results": [], "costDollars": {"total": ' + total + b"}}"))
        done = await research(database, vendors, "research.search_web", {"query": "tides"})
    assert done.data == []
    assert [(line["cost"], line["estimated"]) for line in done.usage] == [(Decimal("0.007"), True)]


async def test_results_that_parallel_counted_beyond_the_price_are_counted_too(database: str) -> None:
    usage = [{"name": "sku_search", "count": 1}, {"name": "sku_search_additional_results", "count": 3}]
    async with served(Vendors()) as vendors:
        vendors.parallel.then(Answer(json={"results": [], "usage": usage}))
        done = await research(
            database, vendors, "research.search_company", {"objective": "What is it?", "queries": ["nordlys"]}
        )
    assert [(line["cost"], line["estimated"]) for line in done.usage] == [(Decimal("0.008"), True)]


@pytest.mark.guarantee("M4")
async def test_a_credit_that_no_price_covers_keeps_the_vendor_s_answer_back(database: str) -> None:
    script: list[Turn] = [Calls([Call("research.find_contact", PERSON)]), Say("Done.")]
    async with served(Vendors()) as vendors, harness(tools=vendors.tools(), script=script, database_url=database) as h:
        done = await told(h, await h.start())
    assert done.state == "failed"
    assert all("ida@nordlys.example" not in text for text in done.texts)
