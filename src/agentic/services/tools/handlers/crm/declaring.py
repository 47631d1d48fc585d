"""What the CRM's tools declare alike, and what several of them take and answer."""

from collections.abc import Callable
from typing import Annotated, Any

from pydantic import BaseModel, Field

from agentic.contract.errors import NotFound
from agentic.contract.results import ErrorCode
from agentic.contract.trust import Trust
from agentic.services.tools.declarations import HandlerFunction, Tool, internal_tool

MAX_RESULTS = 50
MAX_BATCH = 50
_NOTES_SHOWN_CHARS = 300

Query = Annotated[str, Field(max_length=200)]
Limit = Annotated[int, Field(ge=1, le=MAX_RESULTS)]


class Upserted(BaseModel):
    """What an upsert did; ``changed`` names the fields that have another value now."""

    id: str
    created: bool
    changed: list[str]


class Hidden(BaseModel):
    """What a delete did; ``deleted`` is false for what was gone already."""

    id: str
    deleted: bool


def read(name: str, description: str, **declared: Any) -> Callable[[HandlerFunction], Tool]:
    """Declare a read. Names, titles and notes come from imports and web forms, so all of it is text from outside (B3)."""
    return internal_tool(
        name, description, output_trust=Trust.EXTERNAL, refusals={NotFound: ErrorCode.NOT_FOUND}, **declared
    )


def write(name: str, description: str, **declared: Any) -> Callable[[HandlerFunction], Tool]:
    """Declare a write of the organization's own records that a second execution leaves as they are."""
    return internal_tool(
        name,
        description,
        **{
            "side_effects": "write",
            "idempotency": "idempotent",
            "risk": "low",
            "repeatable": False,
            "refusals": {NotFound: ErrorCode.NOT_FOUND},
            **declared,
        },
    )


def beginning(notes: object) -> str | None:
    """The first of the notes, for a list of results; the whole is read with the one."""
    text = None if notes is None else str(notes)
    return text if text is None or len(text) <= _NOTES_SHOWN_CHARS else text[: _NOTES_SHOWN_CHARS - 1] + "…"
