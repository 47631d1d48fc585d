"""Brings JSON data into Unicode form C, so that two spellings of one text are one value before anything digests it.

The canonical form refuses text that did not pass here (ADR 0006).
"""

from __future__ import annotations

import unicodedata

from agentic.contract.canonical import MAX_DEPTH, CanonicalError
from agentic.contract.json_types import JsonValue


def nfc(value: JsonValue) -> JsonValue:
    """Return `value` with every string and key in form C; the argument is left as it is.

    Raises:
        CanonicalError: two keys of one object become equal, or the value is more than 100 containers deep.

    Source: ADR 0005, 0006.
    """
    return _nfc(value, MAX_DEPTH)


def _nfc(value: JsonValue, depth: int) -> JsonValue:
    if isinstance(value, str):
        return unicodedata.normalize("NFC", value)
    if not isinstance(value, dict | list):
        return value
    if depth == 0:
        raise CanonicalError(f"nested more than {MAX_DEPTH} deep")
    if isinstance(value, list):
        return [_nfc(item, depth - 1) for item in value]
    members: dict[str, JsonValue] = {}
    for key, item in value.items():
        name = unicodedata.normalize("NFC", key)
        if name in members:
            raise CanonicalError("two keys of one object are the same text in Unicode form C")
        members[name] = _nfc(item, depth - 1)
    return members
