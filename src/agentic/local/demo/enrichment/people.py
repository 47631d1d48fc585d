"""Who in the contacts has no email and can be looked up: the people the story is about."""

from collections.abc import Iterable

from agentic.contract.errors import AgenticError
from agentic.contract.values import Value
from agentic.services.tools.handlers.crm.importing import Contact

MOST = 3
_NAME_CHARS, _COMPANY_CHARS = 120, 200
"""What the provider's tool takes."""


class NobodyToFind(AgenticError):
    """The contacts hold nobody whose address is missing and could be looked up."""


class Sought(Value):
    """A person whose work address is to be found."""

    ref: str
    first_name: str
    last_name: str
    company: str
    domain: str | None

    @property
    def name(self) -> str:
        """The whole name."""
        return f"{self.first_name} {self.last_name}"

    @property
    def arguments(self) -> dict[str, str]:
        """As ``fullenrich.submit`` takes a person."""
        found_by = {"company_name": self.company} if self.domain is None else {"domain": self.domain}
        return {"ref": self.ref, "first_name": self.first_name, "last_name": self.last_name, **found_by}


def sought(contacts: Iterable[Contact]) -> tuple[Sought, ...]:
    """The first few contacts without an email that have two names and a company or its domain; may be empty."""
    found: list[Sought] = []
    for contact in contacts:
        first, _, last = contact.name.partition(" ")
        company = contact.company or contact.domain
        fits = max(len(first), len(last)) <= _NAME_CHARS and len(company or "") <= _COMPANY_CHARS
        if contact.email is None and company and last.strip() and fits and len(found) < MOST:
            found.append(
                Sought(
                    ref=f"contact-{len(found) + 1}",
                    first_name=first,
                    last_name=last.strip(),
                    company=company,
                    domain=contact.domain,
                )
            )
    return tuple(found)


def require_somebody(people: tuple[Sought, ...], file: str) -> None:
    """Refuse to tell a story about nobody.

    Raises:
        NobodyToFind: there is none; says what the contacts lack.
    """
    if not people:
        raise NobodyToFind(
            f"{file}: no contact without an email has a first name, a last name and a company, and the demo looks such people up; "
            "add one and start again"
        )
