"""Vendor JSON as values: numbers exact, amounts judged, shapes checked without quoting what was in them. Pure."""

import json
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from agentic.services.tools.handlers.research.faults import AnswerUnreadable
from agentic.services.tools.metering import countable


class Wire(BaseModel):
    """The part of a vendor's object that is read; what else it holds is passed over."""

    model_config = ConfigDict(frozen=True, extra="ignore")


W = TypeVar("W", bound=Wire)


def decoded(body: bytes) -> Mapping[str, Any] | None:
    """The JSON object of a body; ``None`` when it is none. Fractions are decimals, for amounts must not be floats (M3)."""
    try:
        # NaN and Infinity are no JSON; one in an amount reads as a missing amount
        content = json.loads(body, parse_float=Decimal, parse_constant=lambda _: None)
    except (ValueError, RecursionError, ArithmeticError):
        return None
    return content if isinstance(content, dict) else None


def shaped(model: type[W], content: Any, *, vendor: str) -> W:
    """The content as the vendor's contract has it.

    Raises:
        AnswerUnreadable: it is of another shape; names the place, never the value.
    """
    try:
        return model.model_validate(content)
    except ValidationError as error:
        place = ".".join(
            map(str, error.errors(include_url=False, include_context=False, include_input=False)[0]["loc"])
        )
    raise AnswerUnreadable(f"{vendor}: its answer is not of the shape it documents, at {place or 'its root'}")


def amount(value: object) -> Decimal | None:
    """An amount a vendor reported; ``None`` when it is missing, negative, not finite or no number."""
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        return None
    number = Decimal(value)
    return number if countable(number) else None
