"""Exa's search: the general index, people and companies. It names what a search cost, in dollars."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from agentic.contract.canonical import canonical
from agentic.services.tools.context import CallContext
from agentic.services.tools.handlers.research.decoding import Wire, amount, shaped
from agentic.services.tools.handlers.research.faults import AnswerUnreadable
from agentic.services.tools.handlers.research.prices import ResearchPrices
from agentic.services.tools.handlers.research.vendor import Account, Answer, Meaning, Request, Vendor, ask, by_status
from agentic.services.tools.handlers.retries import RetryBudget

_MEANINGS = {
    200: Meaning.ANSWER,
    400: Meaning.REQUEST,
    401: Meaning.CREDENTIAL,
    402: Meaning.PAYMENT,
    403: Meaning.CREDENTIAL,
    408: Meaning.BUSY,
    422: Meaning.REQUEST,
    429: Meaning.BUSY,
    501: Meaning.REQUEST,
}
_EXCERPT_CHARS = 1_000


_OF_THE_QUESTION = frozenset({"PROHIBITED_CONTENT", "ROBOTS_FILTER_FAILED"})
"""Tags of a 403 that speak of what was asked for, not of the key."""


def _meaning(answer: Answer) -> Meaning:
    if answer.reply.status == 403 and answer.content.get("tag") in _OF_THE_QUESTION:
        return Meaning.UNAVAILABLE
    return by_status(_MEANINGS, answer.reply.status)


def _words(content: Mapping[str, Any]) -> object:
    return content.get("error")


EXA = Vendor(
    name="Exa",
    key_header="x-api-key",
    meaning=_meaning,
    words=_words,
    retries=RetryBudget(attempts=3, attempt_timeout_s=20, backoff_s=0.5, max_wait_s=3),
)


class Company(Wire):
    """Where somebody works or worked."""

    name: str | None = None


class Dates(Wire):
    """From when to when; ``to`` is null for now."""

    to: str | None = None


class Work(Wire):
    """One line of a work history."""

    title: str | None = None
    company: Company | None = None
    dates: Dates | None = None


class Properties(Wire):
    """What is known of a person; every leaf may be null."""

    name: str | None = None
    location: str | None = None
    workHistory: list[Work] | None = None  # noqa: N815 (the vendor's spelling)


class Entity(Wire):
    """What a result is about."""

    id: str | None = None
    type: str | None = None
    properties: Properties | None = None


class Result(Wire):
    """One hit, in the vendor's order."""

    id: str
    url: str
    title: str | None = None
    publishedDate: str | None = None  # noqa: N815 (the vendor's spelling)
    author: str | None = None
    highlights: list[str] | None = None
    entities: list[Entity] | None = None

    @property
    def person(self) -> Properties | None:
        """Of a person, what is known; a search for people sometimes answers a page without one."""
        for entity in self.entities or ():
            if entity.type == "person":
                return entity.properties
        return None


class _Found(Wire):
    results: list[Result]


async def search(
    ctx: CallContext,
    account: Account,
    prices: ResearchPrices,
    *,
    query: str,
    limit: int,
    filters: Mapping[str, Any] | None = None,
    category: Literal["people"] | None = None,
) -> Sequence[Result]:
    """Search once, and report what it cost: what Exa named, or the list price when it named nothing that is an amount.

    Args:
        query: in natural language.
        limit: 1 to 10; the eleventh result would cost extra.
        filters: domains and dates, of the general index alone: with a category Exa refuses them.
        category: ``people`` answers persons; ``None`` searches the general index, which holds none.

    Raises:
        HandlerError: as ``ask``.
    """
    body = {
        "query": query,
        "type": "auto",
        "numResults": limit,
        "contents": {"highlights": {"maxCharacters": _EXCERPT_CHARS}},
        **({"category": category} if category else filters or {}),
    }
    content = await ask(ctx, account, Request(path="/search", body=canonical(body)))
    if content is None:
        raise AnswerUnreadable(f"{EXA.name}: a search always has an answer")
    found = shaped(_Found, content, vendor=EXA.name)
    costs = content.get("costDollars")
    named = amount(costs.get("total")) if isinstance(costs, dict) else None
    cost = prices.exa_request if named is None else named
    ctx.report_usage(1, "request", cost=cost, provider=EXA.name, estimated=named is None)
    return found.results
