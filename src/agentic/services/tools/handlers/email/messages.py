"""An email as Nylas writes it, and the bounded parts of it that a model reads."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from agentic.services.tools.handlers.errors import UpstreamUnavailableError

MAX_PEOPLE = 10
_MAX_NAME_CHARS, _MAX_SUBJECT_CHARS = 100, 300
T = TypeVar("T")


class _Wire(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class WirePerson(_Wire):
    """A sender or a recipient."""

    email: str | None = None
    name: str | None = None


class WireAttachment(_Wire):
    """What is told of a file."""

    filename: str | None = None
    size: int | None = None


class WireEmail(_Wire):
    """The fields that are read; a provider leaves out what it does not have."""

    id: str
    thread_id: str | None = None
    subject: str | None = None
    sender: list[WirePerson] | None = Field(default=None, alias="from")
    to: list[WirePerson] | None = None
    cc: list[WirePerson] | None = None
    date: int | None = None
    snippet: str | None = None
    unread: bool | None = None
    body: str | None = None
    attachments: list[WireAttachment] | None = None


class Person(BaseModel):
    """Somebody of an email, as the email itself says; a name proves nothing."""

    email: str
    name: str | None


_ONE, _LIST = TypeAdapter(WireEmail), TypeAdapter(list[WireEmail])


def one_email(content: Mapping[str, Any]) -> WireEmail:
    """The email of an answer.

    Raises:
        UpstreamUnavailableError: the answer is of another shape; names the place, never the value.
    """
    return _shaped(_ONE, content)


def emails(content: Mapping[str, Any]) -> list[WireEmail]:
    """The emails of a list. Raises as ``one_email``."""
    return _shaped(_LIST, content)


def _shaped(shape: TypeAdapter[T], content: Mapping[str, Any]) -> T:
    try:
        return shape.validate_python(content.get("data"))
    except ValidationError as error:
        faults = error.errors(include_url=False, include_context=False, include_input=False)
        place = ".".join(map(str, faults[0]["loc"]))
    raise UpstreamUnavailableError(f"Nylas: an email is not of the shape it documents, at data {place}".rstrip())


def people(listed: Sequence[WirePerson] | None) -> list[Person]:
    """The first of them, bounded."""
    return [
        Person(email=(person.email or "")[:320], name=person.name[:_MAX_NAME_CHARS] if person.name else None)
        for person in (listed or ())[:MAX_PEOPLE]
    ]


def sender(email: WireEmail) -> Person | None:
    """Who it says it is from."""
    return next(iter(people(email.sender)), None)


def subject(email: WireEmail) -> str:
    """Bounded; empty when there is none."""
    return (email.subject or "")[:_MAX_SUBJECT_CHARS]


def moment(email: WireEmail) -> str | None:
    """When it was sent or received, in ISO 8601 and UTC; ``None`` when it does not say or says no time there is."""
    if email.date is None:
        return None
    try:
        return datetime.fromtimestamp(email.date, UTC).isoformat()
    except (ValueError, OverflowError, OSError):
        return None
