"""Reads JSON text strictly: what a model or a stranger wrote is either one unambiguous value or refused with a reason.

The reasons name a rule and a place in the text, never a value. What the arguments mean for a schema is `arguments`.
"""

from __future__ import annotations

import json
import re
import unicodedata
from decimal import Decimal
from typing import Any, Final, NoReturn

from agentic.contract.canonical import number_text
from agentic.contract.json_types import JsonObject, JsonValue

MAX_BYTES: Final = 256 * 1024
MAX_DEPTH: Final = 64
MAX_NUMBER_CHARACTERS: Final = 128
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_LARGEST_EXACT: Final = 1e21


class JsonTextRefused(ValueError):
    """The text is not one JSON value that can be carried; the message says why in words for a model."""


def parse_json(text: str) -> JsonValue:
    """Return the one value `text` holds, its strings in Unicode form C.

    The value reads back the same from its canonical form: a number without a fraction is an integer (1.0 and 1e2 too).

    Args:
        text: at most 256 KiB of UTF-8, at most 64 containers deep.

    Raises:
        JsonTextRefused: not JSON, cut off, or more than one value; a byte order mark; a key twice in one object, also
            after form C; NaN, an infinity, a number beyond a double's range, -0.0, a number of more than 128 characters;
            U+0000 or a lone surrogate; too long or too deep.

    Source: ADR 0005.
    """
    if len(text) > MAX_BYTES or len(text.encode("utf-8", "surrogatepass")) > MAX_BYTES:
        raise JsonTextRefused(f"longer than {MAX_BYTES // 1024} KiB")
    if text.startswith("\ufeff"):
        raise JsonTextRefused("starts with a byte order mark; send plain JSON")
    try:
        value = json.loads(
            text,
            object_pairs_hook=_object,
            parse_constant=_constant,
            parse_float=_float,
            parse_int=_int,
        )
    except json.JSONDecodeError as error:
        raise JsonTextRefused(_reason(error)) from None  # the cause carries the whole text
    except RecursionError:
        raise JsonTextRefused(f"nested more than {MAX_DEPTH} deep") from None
    return _settled(value, MAX_DEPTH)


def _settled(value: Any, depth: int) -> JsonValue:
    """The value with every string checked and in form C."""
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, list | dict) and depth == 0:
        raise JsonTextRefused(f"nested more than {MAX_DEPTH} deep")
    if isinstance(value, list):
        return [_settled(item, depth - 1) for item in value]
    if isinstance(value, dict):
        return {key: _settled(item, depth - 1) for key, item in value.items()}
    scalar: JsonValue = value
    return scalar


def _object(pairs: list[tuple[str, Any]]) -> JsonObject:
    members: JsonObject = {}
    for key, item in pairs:
        name = _text(key)
        if name in members:
            raise JsonTextRefused("one object has the same key twice")
        members[name] = item
    return members


def _text(text: str) -> str:
    if text.isascii():
        if "\0" in text:
            raise JsonTextRefused("a string holds the character U+0000")
        return text
    if "\0" in text:
        raise JsonTextRefused("a string holds the character U+0000")
    if _SURROGATE.search(text):
        raise JsonTextRefused("a string holds half of a surrogate pair")
    return unicodedata.normalize("NFC", text)


def _constant(name: str) -> NoReturn:
    raise JsonTextRefused("NaN and the infinities are not JSON numbers")


def _int(text: str) -> int:
    _check_length(text)
    if text == "-0":
        raise JsonTextRefused("a number is negative zero")
    return int(text)


def _float(text: str) -> int | float:
    _check_length(text)
    number = float(text)
    if number in (float("inf"), float("-inf")):
        raise JsonTextRefused("a number is too large")
    if number == 0:
        if text.startswith("-"):
            raise JsonTextRefused("a number is negative zero")
        if any(digit in "123456789" for digit in re.split("[eE]", text)[0]):
            raise JsonTextRefused("a number is too small")
        return 0
    if number.is_integer() and abs(number) < _LARGEST_EXACT:
        # The canonical text of such a number has no fraction, so the stored and the executed value must not have one either.
        exact = Decimal(text)
        return int(exact) if exact == int(exact) else int(number_text(number))
    return number


def _check_length(text: str) -> None:
    if len(text) > MAX_NUMBER_CHARACTERS:
        raise JsonTextRefused(f"a number has more than {MAX_NUMBER_CHARACTERS} characters")


def _reason(error: json.JSONDecodeError) -> str:
    if error.msg.startswith("Extra data"):
        return f"more than one value; the second starts at character {error.pos}"
    if error.pos >= len(error.doc.rstrip()) or error.msg.startswith("Unterminated string"):
        return f"cut off after {len(error.doc)} characters"
    what = error.msg.removesuffix(" at")
    return f"not JSON: {what[0].lower()}{what[1:]} at character {error.pos}"
