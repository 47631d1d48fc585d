"""Canonical JSON and its digest: one value, one sequence of bytes, on every machine and after every upgrade.

RFC 8785 (keys in UTF-16 order, ECMAScript number text), extended by exact integers of any size. The walk prints the numbers
itself because orjson changed its float text between releases; orjson only joins the pieces. Bringing text into Unicode form C
is `normal_form.nfc`, parsing is `services.tools.arguments`.
"""

from __future__ import annotations

import hashlib
import math
import unicodedata
from typing import Final

import orjson

from agentic.contract.json_types import JsonValue

MAX_DEPTH: Final = 100
MAX_INTEGER_DIGITS: Final = 1_000
DIGEST_VERSION: Final = "c1"

_INT64_MIN: Final = -(2**63)
_UINT64_MAX: Final = 2**64 - 1
_INTEGER_LIMIT: Final = 10**MAX_INTEGER_DIGITS


class CanonicalError(ValueError):
    """The value has no canonical form. The message names the rule and never the value."""


def canonical(value: JsonValue) -> bytes:
    """Return the one byte sequence that stands for `value`.

    Equal values give equal bytes whatever the order of their keys; 1.0 and 1 are one value. Different values give
    different bytes.

    Args:
        value: plain JSON data whose strings are in Unicode form C (see `normal_form.nfc`), at most 100 containers deep.

    Raises:
        CanonicalError: NaN, an infinity, -0.0, a lone surrogate, U+0000, text that is not in form C, a key that is not a
            string, an integer of more than 1,000 digits, too deep, or a type JSON does not have.

    Source: ADR 0006.
    """
    try:
        return orjson.dumps(_prepared(value, MAX_DEPTH))
    except orjson.JSONEncodeError as error:
        # What is left for the encoder to refuse is a string that UTF-8 cannot carry.
        raise CanonicalError("text holds a lone surrogate, which UTF-8 cannot carry") from error


def digest(value: JsonValue) -> str:
    """Return `c1:` and the SHA-256 of the canonical bytes in hex; the prefix is the version of the form.

    Raises:
        CanonicalError: as `canonical`.

    Source: ADR 0006.
    """
    return digest_of(canonical(value))


def digest_of(body: bytes) -> str:
    """Return the digest of a value whose canonical bytes are at hand; `digest(v)` is `digest_of(canonical(v))`."""
    return f"{DIGEST_VERSION}:{hashlib.sha256(body).hexdigest()}"


def number_text(number: float) -> str:
    """Return the text ECMAScript prints for a finite double: the shortest digits that read back as it.

    Raises:
        CanonicalError: NaN, an infinity or -0.0.

    Source: RFC 8785, 3.2.2.3.
    """
    if not math.isfinite(number):
        raise CanonicalError("number is not finite")
    if number == 0:
        if math.copysign(1.0, number) < 0:
            raise CanonicalError("number is negative zero")
        return "0"
    sign = "-" if number < 0 else ""
    # repr() gives the shortest digits too; only the layout around them differs from ECMAScript's.
    mantissa, _, exponent = repr(abs(number)).partition("e")
    whole, _, fraction = mantissa.partition(".")
    all_digits = whole + fraction
    leading_zeros = len(all_digits) - len(all_digits.lstrip("0"))
    digits = all_digits.strip("0")
    point = len(whole) + int(exponent or 0) - leading_zeros  # the value is 0.DIGITS times ten to this power
    count = len(digits)
    if count <= point <= 21:
        return sign + digits + "0" * (point - count)
    if 0 < point <= 21:
        return f"{sign}{digits[:point]}.{digits[point:]}"
    if -6 < point <= 0:
        return f"{sign}0.{'0' * -point}{digits}"
    tail = f".{digits[1:]}" if count > 1 else ""
    return f"{sign}{digits[0]}{tail}e{point - 1:+d}"


def _prepared(value: object, depth: int) -> object:
    """The value as orjson must see it: keys sorted, numbers already printed where orjson would print them otherwise."""
    kind = type(value)
    if value is None or kind is bool:
        return value
    if isinstance(value, str) and kind is str:
        return _text(value)
    if isinstance(value, int) and kind is int:
        if _INT64_MIN <= value <= _UINT64_MAX:
            return value
        if abs(value) >= _INTEGER_LIMIT:
            raise CanonicalError(f"integer has more than {MAX_INTEGER_DIGITS} digits")
        return orjson.Fragment(str(value))
    if isinstance(value, float) and kind is float:
        return orjson.Fragment(number_text(value))
    if depth == 0:
        raise CanonicalError(f"nested more than {MAX_DEPTH} deep")
    if isinstance(value, dict) and kind is dict:
        return {key: _prepared(value[key], depth - 1) for key in _sorted_keys(value)}
    if isinstance(value, list) and kind is list:
        return [_prepared(item, depth - 1) for item in value]
    raise CanonicalError(f"type {kind.__name__} is not JSON")


def _sorted_keys(members: dict[str, object]) -> list[str]:
    if any(type(key) is not str for key in members):
        raise CanonicalError("key is not a string")
    for key in members:
        _text(key)
    # The two orders differ only where an astral key meets one from U+E000 to U+FFFF.
    return sorted(members) if all(map(str.isascii, members)) else sorted(members, key=_utf16)


def _utf16(key: str) -> bytes:
    try:
        return key.encode("utf-16-be")
    except UnicodeEncodeError as error:
        raise CanonicalError("key holds a lone surrogate, which UTF-8 cannot carry") from error


def _text(text: str) -> str:
    if "\0" in text:
        raise CanonicalError("text holds U+0000, which Postgres refuses")
    if not text.isascii() and not unicodedata.is_normalized("NFC", text):
        raise CanonicalError("text is not in Unicode form C; pass the value through nfc() first")
    return text
