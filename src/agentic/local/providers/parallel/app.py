"""Parallel's search as it documents it: unknown fields refused at both levels, counters in place of money."""

from collections.abc import Mapping, Sequence
from typing import Any

from agentic.local.providers.stand_in import Answer, Received, StandIn

_FIELDS = frozenset(
    ("search_queries", "objective", "mode", "max_chars_total", "session_id", "client_model", "advanced_settings")
)
_SETTINGS = frozenset(("max_results", "location", "excerpt_settings", "fetch_policy", "source_policy"))
_INCLUDED = 10

PAGES: Sequence[Mapping[str, Any]] = (
    {
        "url": "https://nordlys.example/about",
        "title": "About Nordlys",
        "publish_date": "2026-02-11",
        "excerpts": ["Nordlys builds tide sensors in Bergen."],
    },
)


class Parallel(StandIn):
    """The vendor.

    Attributes:
        pages: what every search finds, in order.
        counts: ``False`` leaves ``usage`` null, as the vendor may.
    """

    name = "parallel"

    def __init__(self, key: str, *, pages: Sequence[Mapping[str, Any]] = PAGES, counts: bool = True) -> None:
        super().__init__(key)
        self.pages, self.counts = pages, counts

    def answer(self, request: Received) -> Answer:
        """Search, or say what is wrong with the request."""
        if not self.knows(request):
            return refusal(401, "The API key is missing or not valid")
        if (request.method, request.path) != ("POST", "/v1/search"):
            return refusal(404, "There is no such endpoint")
        body = request.json
        fault = _fault(body)
        if fault is not None:
            return refusal(422, "The request is not valid", {"field": fault})
        settings = body.get("advanced_settings") or {}
        wanted = settings.get("max_results", _INCLUDED)
        results = [dict(each) for each in self.pages[:wanted]]
        session = body.get("session_id") or f"session-{len(self.requests)}"
        return Answer(
            json={
                "search_id": f"search_{len(self.requests):032x}",
                "session_id": session,
                "results": results,
                "warnings": _warnings(settings),
                "usage": _usage(len(results)) if self.counts else None,
            }
        )


def refusal(status: int, words: str, detail: Mapping[str, Any] | None = None) -> Answer:
    """An error in Parallel's shape."""
    error = {"ref_id": "ref-0001", "message": words, "detail": detail}
    return Answer(status=status, json={"type": "error", "error": error})


def _fault(body: Any) -> str | None:
    if not isinstance(body, dict):
        return "body"
    settings = body.get("advanced_settings") or {}
    unknown = sorted((body.keys() - _FIELDS) | (settings.keys() - _SETTINGS))
    if unknown:
        return str(unknown[0])
    queries = body.get("search_queries")
    if not isinstance(queries, list) or not 1 <= len(queries) <= 5:
        return "search_queries"
    if any(not isinstance(each, str) or not 1 <= len(each) <= 200 for each in queries):
        return "search_queries"
    too_long = len(body.get("objective") or "") > 5_000
    return "objective" if too_long else None


def _warnings(settings: Mapping[str, Any]) -> list[dict[str, Any]] | None:
    if "location" not in settings:
        return None
    return [{"type": "input_validation_warning", "message": "This location is not supported and was ignored"}]


def _usage(results: int) -> list[dict[str, Any]]:
    further = max(0, results - _INCLUDED)
    counters = [{"name": "sku_search", "count": 1}]
    return [*counters, {"name": "sku_search_additional_results", "count": further}] if further else counters
