"""The one encoding that measures a value and renders it, so that nothing is stored or shown at another size or in other words.

It keeps the order of keys. The form that is digested sorts them and is `canonical`; turning what a handler returned into
plain data is `plain`.
"""

from __future__ import annotations

import json
from typing import Final

from agentic.contract.json_types import JsonValue

_ENCODER: Final = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def encode(value: JsonValue) -> bytes:
    """Return `value` as compact UTF-8 JSON, the keys in the order they stand in.

    Numbers are printed as Python's `repr` does, which no library upgrade changes. Keep these bytes, not a jsonb of them,
    where a replay must show the same text: jsonb reorders keys and rewrites numbers.

    Args:
        value: data as `plain.plain` returns it.

    Raises:
        ValueError: NaN, an infinity, a lone surrogate, or a cycle.

    Source: B4.
    """
    return _ENCODER.encode(value).encode()


def encoded_size(value: JsonValue) -> int:
    """Return how many bytes `encode` gives."""
    return len(encode(value))
