"""Reading one page: what was counted, what the page itself answered, and whose fault a failure is."""

from decimal import Decimal
from typing import Any

import pytest

from agentic.local.providers.firecrawl import Firecrawl, Page
from agentic.local.providers.stand_in import Answer
from research_stage import FIRECRAWL_CREDIT, KEYS, SITE, Vendors, research, served

SCRAPE = "research.scrape_page"
PDF = "https://nordlys.example/report.pdf"


def firecrawl(**knobs: Any) -> Vendors:
    return Vendors(firecrawl=Firecrawl(str(KEYS.firecrawl), **knobs))


@pytest.mark.guarantee("M1")
async def test_an_unsupported_firecrawl_target_maps_to_unavailable_and_writes_no_usage_row(database: str) -> None:
    async with served(firecrawl(unsupported=["nordlys.example"])) as vendors:
        done = await research(database, vendors, SCRAPE, {"url": SITE})
        assert len(vendors.firecrawl.requests) == 1
    assert (done.code, done.usage, done.holds) == ("unavailable", [], ["released"])
    assert done.state == "succeeded"


@pytest.mark.guarantee("M1", "M3")
async def test_a_firecrawl_row_uses_the_response_credit_count_when_it_is_available(database: str) -> None:
    pages = {PDF: Page(markdown="Twelve pages.", pdf_pages=12)}
    async with served(firecrawl(pages=pages)) as vendors:
        counted = await research(database, vendors, SCRAPE, {"url": PDF})
        vendors.firecrawl.names_credits = False
        worked_out = await research(database, vendors, SCRAPE, {"url": PDF})
        bodies = [request.json for request in vendors.firecrawl.requests]
    cost = 13 * Decimal(FIRECRAWL_CREDIT)
    assert [(line["quantity"], line["cost"], line["estimated"]) for line in counted.usage] == [(13, cost, False)]
    assert [(line["quantity"], line["cost"], line["estimated"]) for line in worked_out.usage] == [(13, cost, True)]
    assert counted.usage[0]["price_row"] is not None
    assert all(body["parsers"] == [{"type": "pdf", "maxPages": 29}] for body in bodies)  # what the bound stands on


async def test_a_page_that_is_gone_is_an_answer_that_says_so_and_is_paid_for(database: str) -> None:
    async with served(firecrawl(pages={})) as vendors:
        done = await research(database, vendors, SCRAPE, {"url": SITE})
    assert (done.data["page_status"], done.data["markdown"]) == (404, "Not found")
    assert len(done.usage) == 1


@pytest.mark.guarantee("B3")
async def test_a_page_is_labelled_text_from_outside_with_its_repeated_tags_joined(database: str) -> None:
    pages = {SITE: Page(markdown="# Nordlys", title=["Nordlys", "Tide sensors"])}
    async with served(firecrawl(pages=pages)) as vendors:
        done = await research(database, vendors, SCRAPE, {"url": SITE})
    assert (done.data["title"], done.data["markdown"], done.data["page_status"]) == (
        "Nordlys Tide sensors",
        "# Nordlys",
        200,
    )
    assert done.texts[0].startswith('{"ok":true,"external":')


@pytest.mark.parametrize(
    "busy",
    [
        Answer(
            status=408,
            json={
                "success": False,
                "code": "SCRAPE_TIMEOUT",
                "details": {"state": "processing_continues", "retryAfterSeconds": 0},
            },
        ),
        Answer(status=429, json={"success": False, "error": "full"}, headers={"retry-after": "0"}),
        Answer(status=502, body=b"<html>bad gateway</html>"),
        Answer(status=500, json={"success": False, "code": "SCRAPE_ALL_ENGINES_FAILED", "error": "no"}),
    ],
)
async def test_a_busy_firecrawl_is_asked_again_with_the_same_bytes(database: str, busy: Answer) -> None:
    async with served(Vendors()) as vendors:
        vendors.firecrawl.then(busy)
        done = await research(database, vendors, SCRAPE, {"url": SITE})
        first, second = vendors.firecrawl.requests
    assert first.raw == second.raw
    assert (done.data["page_status"], len(done.usage)) == (200, 1)


async def test_a_host_without_a_name_is_the_target_s_fault_and_is_not_asked_again(database: str) -> None:
    """Its status is 500, yet waiting changes nothing."""
    async with served(Vendors()) as vendors:
        done = await research(database, vendors, SCRAPE, {"url": "https://nowhere.invalid/"})
        assert len(vendors.firecrawl.requests) == 1
    assert (done.code, done.usage) == ("unavailable", [])


@pytest.mark.parametrize(
    ("answer", "raised"),
    [
        (
            Answer(status=403, json={"success": False, "error": "Forbidden: the key may not do this"}),
            "CredentialRefused",
        ),
        (
            Answer(
                status=403,
                json={
                    "success": False,
                    "error": "This site is not supported yet",
                    "code": "THIRD_PARTY_DATA_TERMS_REQUIRED",
                },
            ),
            "CredentialRefused",
        ),
        (Answer(status=402, json={"success": False, "error": "Payment required"}), "BalanceSpent"),
        (Answer(status=200, json={"success": False, "error": "odd"}), "AnswerUnreadable"),
    ],
)
async def test_a_refusal_that_is_not_the_target_s_raises(database: str, answer: Answer, raised: str) -> None:
    async with served(Vendors()) as vendors:
        vendors.firecrawl.then(*[answer] * 20)
        done = await research(database, vendors, SCRAPE, {"url": SITE})
    assert (done.state, done.raised, done.usage) == ("failed", {raised}, [])


async def test_a_page_larger_than_what_is_read_of_an_answer_is_paid_for_and_says_so(database: str) -> None:
    page = Page(markdown="x" * (4 * 1024 * 1024 + 1))
    async with served(firecrawl(pages={SITE: page})) as vendors:
        done = await research(database, vendors, SCRAPE, {"url": SITE})
        assert len(vendors.firecrawl.requests) == 1
    assert done.code == "output_too_large"
    assert [(line["quantity"], line["estimated"]) for line in done.usage] == [(1, True)]


@pytest.mark.parametrize(
    "url",
    [
        "ftp://nordlys.example/",
        "https://ida:word@nordlys.example/",
        "nordlys.example",
        "https://nordlys.example/ and more",
    ],
)
async def test_what_is_no_address_of_a_page_reaches_nobody(database: str, url: str) -> None:
    async with served(Vendors()) as vendors:
        done = await research(database, vendors, SCRAPE, {"url": url})
        assert vendors.firecrawl.requests == []
    assert done.code == "invalid_input"


async def test_an_address_that_only_the_model_wrote_waits_for_a_person(database: str) -> None:
    async with served(Vendors()) as vendors:
        done = await research(database, vendors, SCRAPE, {"url": SITE + "?q=1"})
        assert len(vendors.firecrawl.requests) == 1  # it stood in what the user wrote
        asked = await research(database, vendors, SCRAPE, {"url": SITE + "?q=secret"}, wrote=SITE)
        assert len(vendors.firecrawl.requests) == 1
    assert done.state == "succeeded"
    assert asked.state == "parked"
