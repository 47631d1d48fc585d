"""Hunter's email finder, domain search and company enrichment. It charges for what it finds and never says how much.

Its statuses are inverted: 403 asks to slow down, 429 says that the plan's allowance is spent, 451 that a person must be left alone.
"""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any
from urllib.parse import urlencode

from agentic.services.tools.context import CallContext
from agentic.services.tools.handlers.research.decoding import Wire, shaped
from agentic.services.tools.handlers.research.faults import AnswerUnreadable, DryRun
from agentic.services.tools.handlers.research.prices import ResearchPrices
from agentic.services.tools.handlers.research.vendor import Account, Answer, Meaning, Request, Vendor, ask, by_status
from agentic.services.tools.handlers.retries import RetryBudget

DRY_RUN_KEY = "test-api-key"
"""The key under which Hunter answers one fixed dummy, whatever it is asked."""
_DRY_RUN_MARK = "_dry_run"
_FINDER_S = 10
"""How long Hunter may look for an address."""

_MEANINGS = {
    200: Meaning.ANSWER,
    202: Meaning.BUSY,  # it still looks; the same call again is billed once
    222: Meaning.BUSY,  # the other mail server misbehaved
    400: Meaning.REQUEST,
    401: Meaning.CREDENTIAL,
    403: Meaning.BUSY,
    404: Meaning.NOTHING,
    422: Meaning.REQUEST,
    429: Meaning.PAYMENT,
    451: Meaning.SUPPRESSED,
}


def _meaning(answer: Answer) -> Meaning:
    if answer.reply.status == 404 and not answer.is_json:
        return Meaning.UNEXPECTED  # a page of some proxy is no word of Hunter's on a person
    return by_status(_MEANINGS, answer.reply.status)


def _words(content: Mapping[str, Any]) -> object:
    errors = content.get("errors")
    first = errors[0] if isinstance(errors, list) and errors else None
    return first.get("details") if isinstance(first, dict) else None


HUNTER = Vendor(
    name="Hunter",
    key_header="x-api-key",
    meaning=_meaning,
    words=_words,
    retries=RetryBudget(attempts=3, attempt_timeout_s=_FINDER_S + 5, backoff_s=1, max_wait_s=4),
)


class Verified(Wire):
    """What Hunter's check of an address said; both may be null."""

    date: str | None = None
    status: str | None = None


class Finding(Wire):
    """The finder's answer."""

    first_name: str | None = None
    last_name: str | None = None
    email: str | None = None
    score: int | None = None
    accept_all: bool | None = None
    position: str | None = None
    company: str | None = None
    linkedin_url: str | None = None
    verification: Verified | None = None


class Address(Wire):
    """One address of a domain."""

    value: str
    first_name: str | None = None
    last_name: str | None = None
    position: str | None = None
    linkedin: str | None = None


class DomainAddresses(Wire):
    """Addresses of a domain."""

    organization: str | None = None
    emails: list[Address]


class Geo(Wire):
    """Where a company is."""

    city: str | None = None
    country: str | None = None


class Category(Wire):
    """What a company does."""

    sector: str | None = None
    industry: str | None = None


class Metrics(Wire):
    """How large a company is, in ranges."""

    employees: str | int | None = None
    estimatedAnnualRevenue: str | None = None  # noqa: N815 (the vendor's spelling)


class Handle(Wire):
    """A company's page elsewhere."""

    handle: str | None = None


class Company(Wire):
    """A company; every leaf may be null."""

    name: str | None = None
    legalName: str | None = None  # noqa: N815 (the vendor's spelling)
    domain: str | None = None
    description: str | None = None
    foundedYear: int | None = None  # noqa: N815 (the vendor's spelling)
    location: str | None = None
    category: Category | None = None
    geo: Geo | None = None
    metrics: Metrics | None = None
    linkedin: Handle | None = None
    tags: list[str] | None = None
    tech: list[str] | None = None


async def find_email(
    ctx: CallContext, account: Account, prices: ResearchPrices, *, first_name: str, last_name: str, domain: str
) -> Finding | None:
    """The one address Hunter has for a person; ``None`` when it has none, which costs nothing.

    Raises:
        DefiniteRefusal: the person asked not to be processed.
        HandlerError: as ``ask``, and ``DryRun``.
    """
    query = {"domain": domain, "first_name": first_name, "last_name": last_name, "max_duration": str(_FINDER_S)}
    data = await _data(ctx, account, "/v2/email-finder", query)
    found = None if data is None else shaped(Finding, data, vendor=HUNTER.name)
    if found is None or not found.email:  # a miss is 404, or 200 with a null
        _nothing(ctx)
        return None
    if "@" not in found.email:
        raise AnswerUnreadable(f"{HUNTER.name}: what it calls an address is none")
    _charged(ctx, prices.hunter_finder_credits)
    return found


async def domain_search(ctx: CallContext, account: Account, *, query: Mapping[str, str]) -> DomainAddresses | None:
    """People with an address at a domain; one credit for up to ten of them, none for none.

    Raises:
        HandlerError: as ``ask``, and ``DryRun``.
    """
    data = await _data(ctx, account, "/v2/domain-search", query)
    found = None if data is None else shaped(DomainAddresses, data, vendor=HUNTER.name)
    if found is None or not found.emails:
        _nothing(ctx)
        return None
    _charged(ctx, Decimal(-(-len(found.emails) // 10)))
    return found


async def company(ctx: CallContext, account: Account, prices: ResearchPrices, *, domain: str) -> Company | None:
    """What Hunter knows of a company; ``None`` when it knows nothing, which costs nothing.

    Raises:
        HandlerError: as ``ask``, and ``DryRun``.
    """
    data = await _data(ctx, account, "/v2/companies/find", {"domain": domain})
    if data is None:
        _nothing(ctx)
        return None
    found = shaped(Company, data, vendor=HUNTER.name)
    _charged(ctx, prices.hunter_enrichment_credits)
    return found


async def _data(ctx: CallContext, account: Account, path: str, query: Mapping[str, str]) -> Mapping[str, Any] | None:
    """The ``data`` of an answer, real for sure: a dry run is refused before the call, and by its mark before the meter."""
    if account.dry_run:
        raise DryRun(f"{HUNTER.name}: the key makes up answers; give the deployment a real one. Nothing was asked")
    content = await ask(ctx, account, Request(path=f"{path}?{urlencode(query)}"))
    if content is None:
        return None
    data = content.get("data")
    if not isinstance(data, dict):
        raise AnswerUnreadable(f"{HUNTER.name}: an answer without data")
    if _marked(content) or _marked(data):
        raise DryRun(f"{HUNTER.name}: the answer is marked as made up; it is neither counted nor shown")
    return data


def _marked(content: Mapping[str, Any]) -> bool:
    return bool(content.get(_DRY_RUN_MARK))


def _charged(ctx: CallContext, credits: Decimal) -> None:
    ctx.report_usage(credits, "credit", provider=HUNTER.name, estimated=True)


def _nothing(ctx: CallContext) -> None:
    ctx.report_usage(0, "credit", cost=Decimal(0), provider=HUNTER.name)


def named(addresses: DomainAddresses) -> Sequence[tuple[str, Address]]:
    """The addresses that belong to a person with a name, with that name."""
    people = ((" ".join(filter(None, (each.first_name, each.last_name))), each) for each in addresses.emails)
    return [(name, each) for name, each in people if name]
