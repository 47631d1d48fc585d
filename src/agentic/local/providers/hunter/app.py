"""Hunter v2 as it documents it: nothing found is an answer, 403 means slow down and 429 that the allowance is spent."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from agentic.local.providers.stand_in import Answer, Received, StandIn

TEST_KEY = "test-api-key"
_DUMMY = {"email": "dummy@example.test", "first_name": "Dummy", "last_name": "Person", "score": 96}


@dataclass(frozen=True, kw_only=True, slots=True)
class Person:
    """Somebody with an address.

    Attributes:
        status: of the address's check; ``None`` when it was never checked.
        suppressed: asked not to be processed.
    """

    first_name: str
    last_name: str
    domain: str
    email: str | None
    status: str | None = "valid"
    accept_all: bool = False
    position: str | None = None
    suppressed: bool = False


PEOPLE = (
    Person(
        first_name="Ida",
        last_name="Holm",
        domain="nordlys.example",
        email="ida@nordlys.example",
        position="Head of Platform",
    ),
)
COMPANIES: Mapping[str, Mapping[str, Any]] = {
    "nordlys.example": {
        "id": "00000000-0000-4000-8000-000000000001",
        "name": "Nordlys",
        "legalName": None,
        "domain": "nordlys.example",
        "category": {"sector": "Industrials", "industry": "Sensors"},
        "tags": ["tides"],
        "description": "Tide sensors.",
        "foundedYear": 2011,
        "location": "Bergen, Norway",
        "geo": {"city": "Bergen", "country": "Norway"},
        "linkedin": {"handle": "company/nordlys"},
        "metrics": {"employees": "11-50", "estimatedAnnualRevenue": None},
        "tech": ["postgresql"],
    }
}


class Hunter(StandIn):
    """The vendor.

    Attributes:
        people: whom it has addresses of.
        companies: what it knows of companies, by domain.
        answers_misses: ``200`` answers a person without an address with a null, ``404`` with an error; both occur.
        used: credits the account has used.
    """

    name = "hunter"

    def __init__(
        self,
        key: str,
        *,
        people: Sequence[Person] = PEOPLE,
        companies: Mapping[str, Mapping[str, Any]] = COMPANIES,
        answers_misses: int = 200,
    ) -> None:
        super().__init__(key)
        self.people, self.companies, self.answers_misses = people, companies, answers_misses
        self.used = Decimal(0)

    def answer(self, request: Received) -> Answer:
        """Look up, or say what is wrong. A key in the URL is refused: there it would end up in logs."""
        if "api_key" in request.query:
            return refusal(400, "wrong_params", "This stand-in takes the key in a header alone")
        tested = request.key == TEST_KEY
        if not tested and not self.knows(request):
            return refusal(401, "authentication_failed", "No user was found for the API key")
        if request.method != "GET":
            return refusal(404, "not_found", "There is no such endpoint")
        match request.path:
            case "/v2/email-finder":
                return _dummy() if tested else self._find(request.query)
            case "/v2/domain-search":
                return _dummy() if tested else self._domain(request.query)
            case "/v2/companies/find" if not tested:
                return self._company(request.query)
            case "/v2/account" if not tested:
                return _answered({"requests": {"credits": {"used": self.used, "available": 500}}})
            case _:
                return refusal(401 if tested else 404, "not_found", "There is no such endpoint")

    def _find(self, query: Mapping[str, str]) -> Answer:
        wanted = (query.get("first_name"), query.get("last_name"), query.get("domain"))
        if not all(wanted) or not 3 <= int(query.get("max_duration", "10")) <= 20:
            return refusal(400, "wrong_params", "A parameter is missing or out of range")
        person = next((each for each in self.people if (each.first_name, each.last_name, each.domain) == wanted), None)
        if person is not None and person.suppressed:
            return refusal(451, "claimed_email", "The person asked us not to process their data")
        if person is None and self.answers_misses == 404:
            return refusal(404, "not_found", "We found no address")
        if person is None or person.email is None:
            names = {"first_name": wanted[0], "last_name": wanted[1], "domain": wanted[2]}
            return _answered({**names, "email": None, "score": None, "verification": {"date": None, "status": None}})
        self.used += 1
        return _answered(_found(person))

    def _domain(self, query: Mapping[str, str]) -> Answer:
        if not query.get("domain"):
            return refusal(400, "wrong_params", "A domain or a company is needed")
        found = [each for each in self.people if each.domain == query["domain"] and each.email]
        found = found[: int(query.get("limit", "10"))]
        self.used += -(-len(found) // 10)
        emails = [
            {
                "value": each.email,
                "type": "personal",
                "first_name": each.first_name,
                "last_name": each.last_name,
                "position": each.position,
                "linkedin": None,
                "verification": {"date": None, "status": each.status},
            }
            for each in found
        ]
        return _answered({"domain": query["domain"], "organization": "Nordlys", "emails": emails})

    def _company(self, query: Mapping[str, str]) -> Answer:
        company = self.companies.get(query.get("domain", ""))
        if company is None:
            return refusal(404, "not_found", "Nothing is known of this company")
        self.used += Decimal("0.2")
        return _answered(dict(company))


def refusal(status: int, identifier: str, words: str) -> Answer:
    """An error in Hunter's shape."""
    return Answer(status=status, json={"errors": [{"id": identifier, "code": status, "details": words}]})


def _answered(data: Mapping[str, Any]) -> Answer:
    return Answer(json={"data": data, "meta": {"params": {}}})


def _dummy() -> Answer:
    return _answered({**_DUMMY, "emails": [], "verification": {"date": None, "status": "valid"}})


def _found(person: Person) -> dict[str, Any]:
    return {
        "first_name": person.first_name,
        "last_name": person.last_name,
        "email": person.email,
        "score": 92,
        "domain": person.domain,
        "accept_all": person.accept_all,
        "position": person.position,
        "twitter": None,
        "linkedin_url": None,
        "phone_number": None,
        "company": "Nordlys",
        "sources": [],
        "verification": {"date": None if person.status is None else "2026-03-02", "status": person.status},
    }
