"""The research tools of a deployment, made of its keys. Joined here and nowhere else."""

from collections.abc import Iterator
from dataclasses import replace

from agentic.services.tools.declarations import Tool
from agentic.services.tools.handlers.research.discover_people import discover_people
from agentic.services.tools.handlers.research.enrich_company import enrich_company
from agentic.services.tools.handlers.research.exa import EXA
from agentic.services.tools.handlers.research.find_contact import find_contact
from agentic.services.tools.handlers.research.firecrawl import FIRECRAWL
from agentic.services.tools.handlers.research.hunter import DRY_RUN_KEY, HUNTER
from agentic.services.tools.handlers.research.keys import ResearchKeys, ResearchOrigins
from agentic.services.tools.handlers.research.parallel import PARALLEL
from agentic.services.tools.handlers.research.prices import ResearchPrices
from agentic.services.tools.handlers.research.scrape_page import scrape_page
from agentic.services.tools.handlers.research.search_company import search_company
from agentic.services.tools.handlers.research.search_people import search_people
from agentic.services.tools.handlers.research.search_web import search_web
from agentic.services.tools.handlers.research.vendor import Account, Vendor


def research_tools(
    keys: ResearchKeys,
    *,
    origins: ResearchOrigins | None = None,
    prices: ResearchPrices | None = None,
    backoff_s: float | None = None,
) -> list[Tool]:
    """The tools of the vendors a deployment has keys for.

    Args:
        keys: one for each vendor there is an account with.
        origins: ``None`` for the vendors' own.
        prices: ``None`` for the list prices.
        backoff_s: seconds before a busy vendor is asked a second time; ``None`` for each vendor's own.

    Raises:
        ProgramFault: ``backoff_s`` is negative.
    """
    return list(_tools(keys, origins or ResearchOrigins(), prices or ResearchPrices(), backoff_s))


def _tools(
    keys: ResearchKeys, origins: ResearchOrigins, prices: ResearchPrices, backoff_s: float | None
) -> Iterator[Tool]:
    exa = _account(EXA, keys.exa, origins.exa, backoff_s)
    parallel = _account(PARALLEL, keys.parallel, origins.parallel, backoff_s)
    firecrawl = _account(FIRECRAWL, keys.firecrawl, origins.firecrawl, backoff_s)
    hunter = _account(HUNTER, keys.hunter, origins.hunter, backoff_s)
    if exa is not None:
        yield search_web(exa, prices)
        yield search_people(exa, prices)
    if parallel is not None:
        yield search_company(parallel, prices)
    if firecrawl is not None:
        yield scrape_page(firecrawl, prices)
    if exa is not None or hunter is not None:
        yield discover_people(exa, hunter, prices)
    if hunter is not None:
        yield find_contact(hunter, prices)
        yield enrich_company(hunter, prices)


def _account(vendor: Vendor, key: str | None, origin: str, backoff_s: float | None) -> Account | None:
    if key is None:
        return None
    retries = vendor.retries if backoff_s is None else replace(vendor.retries, backoff_s=backoff_s)
    dry_run = vendor is HUNTER and key == DRY_RUN_KEY
    return Account(vendor=vendor, origin=origin, key=key, retries=retries, dry_run=dry_run)
