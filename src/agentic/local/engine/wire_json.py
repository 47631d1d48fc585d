"""JSON as it comes over the wire, without the numbers that are none: Python reads NaN, Postgres does not keep it."""

from __future__ import annotations

import json
from typing import Any, NoReturn


def loads(text: str | bytes) -> Any:
    """Decode JSON.

    Raises:
        ValueError: it is none, or holds NaN or an infinity.
    """
    return json.loads(text, parse_constant=_refuse)


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no JSON number")
