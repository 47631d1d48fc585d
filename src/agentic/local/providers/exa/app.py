"""Exa's search as it documents it: categories with their rules, contents on request, a cost in dollars."""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from agentic.local.providers.stand_in import Answer, Received, StandIn

_FIELDS = frozenset(
    (
        *("query", "type", "category", "numResults", "includeDomains", "excludeDomains", "startPublishedDate"),
        *("endPublishedDate", "startCrawlDate", "endCrawlDate", "includeText", "excludeText", "userLocation"),
        *("moderation", "contents", "additionalQueries", "systemPrompt", "outputSchema", "objective", "userIdentifier"),
        "stream",
    )
)
_NOT_WITH_ENTITIES = frozenset(
    (
        *("startPublishedDate", "endPublishedDate", "startCrawlDate", "endCrawlDate", "includeText", "excludeText"),
        *("includeDomains", "excludeDomains"),
    )
)
_ENTITIES = frozenset({"people", "company"})
_MAX_RESULTS = 100
_PER_SEARCH, _PER_FURTHER_RESULT = Decimal("0.007"), Decimal("0.001")

PAGES: Sequence[Mapping[str, Any]] = (
    {
        "id": "https://nordlys.example/tides",
        "url": "https://nordlys.example/tides",
        "title": "Tide sensors",
        "publishedDate": "2026-02-11T00:00:00.000Z",
        "author": None,
        "highlights": ["Nordlys builds tide sensors in Bergen."],
    },
)
PEOPLE: Sequence[Mapping[str, Any]] = (
    {
        "id": "https://people.example/ida-holm",
        "url": "https://people.example/ida-holm",
        "title": "Ida Holm",
        "publishedDate": None,
        "author": None,
        "highlights": ["Leads platform work at Nordlys."],
        "entities": [
            {
                "id": "https://entities.example/person/1",
                "type": "person",
                "version": 1,
                "properties": {
                    "name": "Ida Holm",
                    "firstName": "Ida",
                    "lastName": "Holm",
                    "location": "Bergen",
                    "workHistory": [
                        {
                            "title": "Engineer",
                            "location": None,
                            "dates": {"from": "2019-01-01", "to": "2023-01-31"},
                            "company": {"id": None, "name": "Fjord"},
                        },
                        {
                            "title": "Head of Platform",
                            "location": None,
                            "dates": {"from": "2023-02-01", "to": None},
                            "company": {"id": None, "name": "Nordlys"},
                        },
                    ],
                    "educationHistory": None,
                },
            }
        ],
    },
    {"id": "https://people.example/per", "url": "https://people.example/per", "title": "Per Dal", "highlights": None},
)


class Exa(StandIn):
    """The vendor.

    Attributes:
        pages: what a search of the general index finds, in order.
        people: what a search for people finds; one of them comes without an entity, as it happens.
        names_costs: ``False`` leaves ``costDollars`` out, as the vendor may.
    """

    name = "exa"

    def __init__(
        self,
        key: str,
        *,
        pages: Sequence[Mapping[str, Any]] = PAGES,
        people: Sequence[Mapping[str, Any]] = PEOPLE,
        names_costs: bool = True,
    ) -> None:
        super().__init__(key)
        self.pages, self.people, self.names_costs = pages, people, names_costs

    def answer(self, request: Received) -> Answer:
        """Search, or say what is wrong with the request."""
        if not self.knows(request):
            return refusal(401, "INVALID_API_KEY", "The API key is not valid")
        if (request.method, request.path) != ("POST", "/search"):
            return refusal(404, "NOT_FOUND", "There is no such endpoint")
        body = request.json
        if not isinstance(body, dict) or not isinstance(body.get("query"), str) or body.keys() - _FIELDS:
            return refusal(400, "INVALID_REQUEST_BODY", "The body is not what this endpoint takes")
        wanted, category = body.get("numResults", 10), body.get("category")
        if not isinstance(wanted, int) or not 1 <= wanted <= _MAX_RESULTS:
            return refusal(400, "INVALID_NUM_RESULTS", "numResults is out of range")
        if category in _ENTITIES and body.keys() & _NOT_WITH_ENTITIES:
            return refusal(400, "INVALID_REQUEST", "These filters do not go with this category")
        found = self.people if category == "people" else () if category == "company" else self.pages
        results = [_shown(each, body.get("contents")) for each in found[:wanted]]
        cost = _PER_SEARCH + _PER_FURTHER_RESULT * max(0, len(results) - 10)
        costs = {"costDollars": {"total": cost, "search": {"neural": cost}}} if self.names_costs else {}
        return Answer(
            json={
                "requestId": f"rq-{len(self.requests):04}",
                "resolvedSearchType": "neural",
                "searchTime": 412.5,
                "results": results,
                **costs,
            }
        )


def refusal(status: int, tag: str, words: str) -> Answer:
    """An error in Exa's shape."""
    return Answer(status=status, json={"requestId": "rq-refused", "error": words, "tag": tag})


def _shown(result: Mapping[str, Any], contents: object) -> dict[str, Any]:
    asked = contents if isinstance(contents, dict) else {}
    return {name: value for name, value in result.items() if name not in ("highlights", "text") or name in asked}
