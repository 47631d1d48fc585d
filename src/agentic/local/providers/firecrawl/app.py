"""Firecrawl's scrape as it documents it: 200 for a page that is gone, 403 without a code for a site it does not take, credits."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from agentic.local.providers.stand_in import Answer, Received, StandIn

_FIELDS = frozenset(
    (
        *("url", "formats", "onlyMainContent", "onlyCleanContent", "includeTags", "excludeTags", "maxAge", "minAge"),
        *("headers", "waitFor", "timeout", "mobile", "skipTlsVerification", "parsers", "actions", "location"),
        *("removeBase64Images", "blockAds", "proxy", "storeInCache", "lockdown", "redactPII", "zeroDataRetention"),
        *("origin", "integration"),
    )
)
_EXPENSIVE_HOSTS = frozenset({"x.com", "twitter.com"})
_EXPENSIVE_CREDITS = 30
_MIN_TIMEOUT_MS, _MAX_TIMEOUT_MS = 1_000, 300_000


@dataclass(frozen=True, kw_only=True, slots=True)
class Page:
    """A page of the web.

    Attributes:
        status: what its own server answers.
        title: several when its meta tags repeat.
        pdf_pages: of a PDF; 0 for anything else.
    """

    markdown: str
    title: str | list[str] = "Nordlys"
    status: int = 200
    pdf_pages: int = 0


PAGES: Mapping[str, Page] = {"https://nordlys.example/": Page(markdown="# Nordlys\nTide sensors.")}


class Firecrawl(StandIn):
    """The vendor.

    Attributes:
        pages: the web, by address. Any other page is gone, which is an answer; any host under ``.invalid`` has no name.
        unsupported: hosts it does not scrape.
        names_credits: ``False`` leaves ``creditsUsed`` out, as the vendor may.
    """

    name = "firecrawl"

    def __init__(
        self,
        key: str,
        *,
        pages: Mapping[str, Page] = PAGES,
        unsupported: Collection[str] = (),
        names_credits: bool = True,
    ) -> None:
        super().__init__(key)
        self.pages, self.unsupported, self.names_credits = pages, unsupported, names_credits
        self._cached: set[str] = set()

    def answer(self, request: Received) -> Answer:
        """Scrape, or say what is wrong. A request without any key is served, as the vendor does; a wrong key is not."""
        if request.key is not None and not self.knows(request):
            return Answer(status=401, json={"success": False, "error": "Unauthorized: Invalid token"})
        if (request.method, request.path) == ("GET", "/v2/team/credit-usage"):
            return self._balance(request)
        if (request.method, request.path) != ("POST", "/v2/scrape"):
            return refusal(404, "There is no such endpoint", code="NOT_FOUND")
        body = request.json
        faults = _faults(body)
        if faults:
            return refusal(400, "Bad Request", code="BAD_REQUEST", details=faults)
        url = body["url"]
        host = urlsplit(url).hostname or ""
        if host in self.unsupported:
            return Answer(status=403, json={"success": False, "error": "We apologize, this website is not supported"})
        if host.endswith(".invalid"):
            return refusal(500, "The name could not be resolved", code="SCRAPE_DNS_RESOLUTION_ERROR")
        page = self.pages.get(url, Page(markdown="Not found", title="Not found", status=404))
        return Answer(json={"success": True, "data": self._data(url, host, page)})

    def _balance(self, request: Received) -> Answer:
        if request.key is None:
            return Answer(status=401, json={"success": False, "error": "Unauthorized"})
        data = {"remainingCredits": 500, "planCredits": 1000, "billingPeriodStart": None, "billingPeriodEnd": None}
        return Answer(json={"success": True, "data": data})

    def _data(self, url: str, host: str, page: Page) -> dict[str, Any]:
        hit = url in self._cached
        self._cached.add(url)
        metadata: dict[str, Any] = {
            "title": page.title,
            "language": "en",
            "sourceURL": url,
            "url": url,
            "statusCode": page.status,
            "contentType": "application/pdf" if page.pdf_pages else "text/html",
            "scrapeId": f"00000000-0000-4000-8000-{len(self.requests):012x}",
            "proxyUsed": "basic",
            "cacheState": "hit" if hit else "miss",
            "og:site": "any tag of the page",
        }
        if page.pdf_pages:
            metadata["numPages"] = page.pdf_pages
        if self.names_credits:
            metadata["creditsUsed"] = _EXPENSIVE_CREDITS if host in _EXPENSIVE_HOSTS else 1 + page.pdf_pages
        return {"markdown": page.markdown, "metadata": metadata}


def refusal(status: int, words: str, *, code: str, details: object = None) -> Answer:
    """An error in Firecrawl's shape, for a status that has a code."""
    body = {"success": False, "error": words, "code": code}
    return Answer(status=status, json=body if details is None else {**body, "details": details})


def _faults(body: Any) -> list[dict[str, Any]]:
    if not isinstance(body, dict):
        return [{"path": [], "message": "the body is no JSON object"}]
    faults = [{"path": [name], "message": "Unrecognized key"} for name in sorted(body.keys() - _FIELDS)]
    if urlsplit(str(body.get("url", ""))).scheme not in ("http", "https"):
        faults.append({"path": ["url"], "message": "Invalid URL"})
    if not _MIN_TIMEOUT_MS <= body.get("timeout", 60_000) <= _MAX_TIMEOUT_MS:
        faults.append({"path": ["timeout"], "message": "out of range"})
    return faults
