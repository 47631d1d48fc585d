"""Parallel's search. It counts what it did and names no money, so a line's cost is worked out from list prices."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any

from agentic.contract.canonical import canonical
from agentic.contract.json_types import JsonObject
from agentic.services.tools.context import CallContext
from agentic.services.tools.handlers.research.decoding import Wire, amount, shaped
from agentic.services.tools.handlers.research.faults import AnswerUnreadable
from agentic.services.tools.handlers.research.prices import ResearchPrices
from agentic.services.tools.handlers.research.vendor import (
    Account,
    Answer,
    Meaning,
    Request,
    Vendor,
    ask,
    asked_to_wait,
    by_status,
)
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
}
_FURTHER_RESULTS = "sku_search_additional_results"
_EXCERPT_CHARS = 1_500


def _meaning(answer: Answer) -> Meaning:
    meaning = by_status(_MEANINGS, answer.reply.status)
    if meaning is Meaning.BUSY and answer.reply.headers.get("x-should-retry", "").lower() == "false":
        return Meaning.UNAVAILABLE
    return meaning


def _words(content: Mapping[str, Any]) -> object:
    error = content.get("error")  # with and without "type" and "ref_id" around it
    return error.get("message") if isinstance(error, dict) else None


def _wait_s(answer: Answer, now: datetime) -> float | None:
    exact_ms = answer.reply.headers.get("retry-after-ms", "").strip()
    if exact_ms.isascii() and exact_ms.isdigit():
        return float(exact_ms) / 1000
    return asked_to_wait(answer, now)


PARALLEL = Vendor(
    name="Parallel",
    key_header="x-api-key",
    meaning=_meaning,
    words=_words,
    wait_s=_wait_s,
    retries=RetryBudget(attempts=3, attempt_timeout_s=20, backoff_s=0.5, max_wait_s=3),
)


class Result(Wire):
    """One hit, in the vendor's order."""

    url: str
    title: str | None = None
    publish_date: str | None = None
    excerpts: list[str] | None = None


class _Found(Wire):
    results: list[Result]


async def search(
    ctx: CallContext,
    account: Account,
    prices: ResearchPrices,
    *,
    objective: str,
    queries: Sequence[str],
    limit: int,
) -> Sequence[Result]:
    """Search once, and report what it cost.

    Args:
        objective: what is to be found out, in a sentence or two.
        queries: one to five, of at most 200 characters each; Parallel refuses a search without.
        limit: 1 to 10; the eleventh result would cost extra.

    Raises:
        HandlerError: as ``ask``.
    """
    body: JsonObject = {
        "objective": objective,
        "search_queries": [*queries],
        # a limit at the top level is refused: that was the older version's place for it
        "advanced_settings": {
            "max_results": limit,
            "excerpt_settings": {"max_chars_per_result": _EXCERPT_CHARS},
        },
    }
    content = await ask(ctx, account, Request(path="/v1/search", body=canonical(body)))
    if content is None:
        raise AnswerUnreadable(f"{PARALLEL.name}: a search always has an answer")
    found = shaped(_Found, content, vendor=PARALLEL.name)
    cost = prices.parallel_request + prices.parallel_further_result * _further_results(content.get("usage"))
    ctx.report_usage(1, "request", cost=cost, provider=PARALLEL.name, estimated=True)
    return found.results


def _further_results(usage: object) -> Decimal:
    counters = usage if isinstance(usage, list) else []
    counts = [
        amount(each.get("count"))
        for each in counters
        if isinstance(each, dict) and each.get("name") == _FURTHER_RESULTS
    ]
    return sum((count for count in counts if count is not None), Decimal(0))
