"""How values go into columns: JSON text for ``jsonb_to_recordset``, and text that Postgres accepts.

Postgres refuses U+0000 in text and jsonb, and lone surrogates have no UTF-8; both are made visible instead of losing a row (B1).
"""

import dataclasses
import json
from datetime import datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

from agentic.contract.plain import free_key

_NUL_MARK = "␀"


def text(value: str | None) -> str | None:
    """A text column's value: U+0000 as a visible mark, lone surrogates as U+FFFD."""
    if value is None or (value.isascii() and "\0" not in value):
        return value
    return value.replace("\0", _NUL_MARK).encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def jsonb(value: Any) -> str:
    """The text of a jsonb parameter."""
    dumped = _dumped(value)
    # what may need cleaning shows in the text itself; nearly nothing does
    return dumped if dumped.isascii() and "\\u0000" not in dumped else _dumped(_clean(value))


def record(value: Any) -> dict[str, Any]:
    """A dataclass as one element of a recordset parameter, without its nested copies."""
    return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}


def _dumped(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, default=_plain)


def _plain(value: Any) -> Any:
    match value:
        case UUID() | Decimal():
            return str(value)
        case datetime():
            return value.isoformat()
        case _:
            raise TypeError(f"{type(value).__name__} has no column form")


def _clean(value: Any) -> Any:
    match value:
        case str():
            return text(value)
        case dict():
            members: dict[str, Any] = {}
            for key, item in value.items():
                members[free_key(text(str(key)) or "", members)] = _clean(item)
            return members
        case list() | tuple():
            return [_clean(item) for item in value]
        case _:
            return value
