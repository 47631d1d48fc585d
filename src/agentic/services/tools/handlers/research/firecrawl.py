"""Firecrawl's scrape: one page as Markdown. It counts credits, and answers 200 for a page that itself answered an error."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from agentic.contract.canonical import canonical
from agentic.contract.json_types import JsonObject
from agentic.contract.results import ErrorCode
from agentic.services.tools.context import CallContext
from agentic.services.tools.handlers.errors import DefiniteRefusal
from agentic.services.tools.handlers.research.decoding import Wire, amount, shaped
from agentic.services.tools.handlers.research.faults import AnswerTooLarge, AnswerUnreadable
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

MAX_CREDITS = 30
"""The most one scrape can use: 1, with one more for each page of a PDF, or 30 for a page of X."""
_MAX_PDF_PAGES = MAX_CREDITS - 1
_SERVER_TIMEOUT_MS = 25_000
"""Firecrawl's own limit, waiting in its queue included; the attempt allows the rest for the way there and back."""

_MEANINGS = {
    200: Meaning.ANSWER,
    400: Meaning.REQUEST,
    401: Meaning.CREDENTIAL,
    402: Meaning.PAYMENT,
    403: Meaning.CREDENTIAL,
    408: Meaning.BUSY,
    413: Meaning.REQUEST,
    422: Meaning.REQUEST,
    429: Meaning.BUSY,
}
_OF_THE_TARGET = frozenset(
    {
        *("SCRAPE_DNS_RESOLUTION_ERROR", "SCRAPE_SSL_ERROR", "SCRAPE_UNSUPPORTED_FILE_ERROR", "SCRAPE_ACTION_ERROR"),
        *("SCRAPE_PDF_ANTIBOT_ERROR", "SCRAPE_PDF_INSUFFICIENT_TIME_ERROR"),
    }
)
"""Codes of a 500 that speak of the page, not of Firecrawl: asking again is pointless."""


def _meaning(answer: Answer) -> Meaning:
    status, code = answer.reply.status, answer.content.get("code")
    if status == 403 and not code and _speaks_of_the_site(answer.content.get("error")):
        return Meaning.UNAVAILABLE
    if status == 500 and code in _OF_THE_TARGET:
        return Meaning.UNAVAILABLE
    return by_status(_MEANINGS, status)


def _speaks_of_the_site(words: object) -> bool:
    # No code tells a site that is not supported from a key that may not; the wording changed once, these words stayed.
    text = words.lower() if isinstance(words, str) else ""
    return "supported" in text and ("site" in text or "url" in text)


def _words(content: Mapping[str, Any]) -> object:
    return content.get("error")


def _wait_s(answer: Answer, now: datetime) -> float | None:
    details = answer.content.get("details")
    named = amount(details.get("retryAfterSeconds")) if isinstance(details, dict) else None
    return asked_to_wait(answer, now) if named is None else float(named)


FIRECRAWL = Vendor(
    name="Firecrawl",
    key_header="authorization",
    key_prefix="Bearer ",
    meaning=_meaning,
    words=_words,
    wait_s=_wait_s,
    retries=RetryBudget(attempts=3, attempt_timeout_s=30, backoff_s=1, max_wait_s=8),
)


class Metadata(Wire):
    """What is known of the page; any meta tag of it may stand here too."""

    title: str | list[str] | None = None
    description: str | list[str] | None = None
    language: str | list[str] | None = None
    url: str | None = None
    statusCode: int | None = None  # noqa: N815 (the vendor's spelling)
    error: str | None = None
    numPages: int | None = None  # noqa: N815 (the vendor's spelling)


class Page(Wire):
    """A scraped page."""

    markdown: str | None = None
    warning: str | None = None
    metadata: Metadata


async def scrape(ctx: CallContext, account: Account, *, url: str) -> Page:
    """Fetch a page once, and report its credits: what Firecrawl counted, or its table when it did not say.

    Raises:
        DefiniteRefusal: the page is larger than what is read of an answer; it was paid for.
        HandlerError: as ``ask``.
    """
    body: JsonObject = {
        "url": url,
        "formats": ["markdown"],
        "onlyMainContent": True,
        "skipTlsVerification": False,
        "timeout": _SERVER_TIMEOUT_MS,
        "parsers": [{"type": "pdf", "maxPages": _MAX_PDF_PAGES}],
    }
    try:
        content = await ask(ctx, account, Request(path="/v2/scrape", body=canonical(body)))
    except AnswerTooLarge as cut:
        _report(ctx, None, 0)
        raise DefiniteRefusal(str(cut), code=ErrorCode.OUTPUT_TOO_LARGE) from cut
    if content is None or content.get("success") is not True:
        raise AnswerUnreadable(f"{FIRECRAWL.name}: 200 without success")
    page = shaped(Page, content.get("data"), vendor=FIRECRAWL.name)
    _report(ctx, content["data"]["metadata"].get("creditsUsed"), page.metadata.numPages or 0)
    return page


def _report(ctx: CallContext, named: object, pdf_pages: int) -> None:
    counted = amount(named)
    if counted is not None and counted == counted.to_integral_value():
        ctx.report_usage(counted, "credit", provider=FIRECRAWL.name)
        return
    credits = 1 + min(max(pdf_pages, 0), _MAX_PDF_PAGES)
    ctx.report_usage(credits, "credit", provider=FIRECRAWL.name, estimated=True)
