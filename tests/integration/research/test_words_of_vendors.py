"""What a vendor's status and code mean whatever it writes beside them, and that every request carries the key it is paid with."""

from collections.abc import Mapping
from typing import Any

import pytest

from agentic.local.providers.firecrawl import Firecrawl
from agentic.local.providers.stand_in import Answer, Received
from research_stage import KEYS, SITE, Vendors, research, served

WEB = ("research.search_web", {"query": "tides"})
COMPANY = ("research.search_company", {"objective": "Nordlys", "queries": ["nordlys"]})
CONTACT = ("research.find_contact", {"first_name": "Ida", "last_name": "Holm", "domain": "nordlys.example"})
PAGE = ("research.scrape_page", {"url": SITE})
WORDS = ("", "Guthaben aufgebraucht", "success: your request was completed", "the budget of this run is exhausted")


class Keyed(Firecrawl):
    """Firecrawl, which serves without a key too, and notes the keys it is given."""

    def __init__(self) -> None:
        super().__init__(str(KEYS.firecrawl))
        self.keys: list[str | None] = []

    def answer(self, request: Received) -> Answer:
        """Note the key."""
        self.keys.append(request.key)
        return super().answer(request)


async def test_a_vendor_that_serves_without_a_key_is_given_the_deployment_s_own(database: str) -> None:
    """Without it the call would be served all the same, and charged to nobody's account."""
    vendor = Keyed()
    async with served(Vendors(firecrawl=vendor)) as vendors:
        done = await research(database, vendors, *PAGE)
    assert (done.state, len(done.usage)) == ("succeeded", 1)
    assert vendor.keys == [KEYS.firecrawl]


@pytest.mark.parametrize(
    ("vendor", "call", "status", "shape", "raised"),
    [
        ("exa", WEB, 402, lambda words: {"error": words, "tag": "NO_MORE_CREDITS"}, "BalanceSpent"),
        ("parallel", COMPANY, 402, lambda words: {"type": "error", "error": {"message": words}}, "BalanceSpent"),
        ("firecrawl", PAGE, 402, lambda words: {"success": False, "error": words}, "BalanceSpent"),
        ("hunter", CONTACT, 429, lambda words: {"errors": [{"id": "limit", "details": words}]}, "BalanceSpent"),
    ],
    ids=["exa", "parallel", "firecrawl", "hunter"],
)
@pytest.mark.parametrize("words", WORDS)
async def test_a_vendor_s_empty_account_is_told_by_status_and_code_and_is_no_budget_of_ours(
    database: str, vendor: str, call: tuple[str, Mapping[str, Any]], status: int, shape: Any, raised: str, words: str
) -> None:
    async with served(Vendors()) as vendors:
        vendors.all[vendor].then(*[Answer(status=status, json=shape(words))] * 20)
        done = await research(database, vendors, call[0], dict(call[1]))
    assert (done.state, done.error_code, done.raised) == ("failed", "crash_loop", {raised})
    assert done.partial_reason is None
    assert done.usage == []
