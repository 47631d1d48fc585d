"""A verified body as data. Nobody calls this before the signature was found good (T3)."""

import json
import math
import zlib
from typing import Any

from agentic.contract.deliveries import Unreadable

MAX_DEPTH = 64
_GZIP, _GZIP_WINDOW = b"\x1f\x8b", 31


def object_of(raw_body: bytes) -> dict[str, Any]:
    """The JSON object that the bytes hold, as they came: nothing is decompressed.

    Raises:
        Unreadable: no UTF-8, no JSON, no object, a number JSON does not have, or more than 64 containers deep.
    """
    try:
        value = json.loads(raw_body.decode("utf-8"), parse_constant=_no_number, parse_float=_finite)
    except (ValueError, RecursionError):
        raise Unreadable("the body holds no JSON that can be kept") from None
    if not isinstance(value, dict):
        raise Unreadable("the body holds no JSON object")
    if _deeper_than(value, MAX_DEPTH):
        raise Unreadable(f"the body is more than {MAX_DEPTH} containers deep")
    return value


def expanded(raw_body: bytes, *, max_bytes: int) -> bytes:
    """The body of a provider that may compress it, whatever its headers say: JSON never begins as gzip does.

    Args:
        max_bytes: how large it may become.

    Raises:
        Unreadable: it is cut off, damaged, followed by something else, or becomes too large.
    """
    if not raw_body.startswith(_GZIP):
        return raw_body
    unpacking = zlib.decompressobj(wbits=_GZIP_WINDOW)
    try:
        body = unpacking.decompress(raw_body, max_bytes + 1)
    except zlib.error:
        raise Unreadable("the compressed body is damaged") from None
    if len(body) > max_bytes:
        raise Unreadable(f"the body becomes larger than {max_bytes // 1024} KiB")
    if not unpacking.eof or unpacking.unused_data:
        raise Unreadable("the compressed body is not one whole")
    return body


def _no_number(word: str) -> float:
    raise ValueError(word)


def _finite(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise ValueError(digits)
    return number


def _deeper_than(value: Any, depth: int) -> bool:
    level = [value]
    for _ in range(depth):
        level = [
            item
            for each in level
            if isinstance(each, (dict, list))
            for item in (each.values() if isinstance(each, dict) else each)
        ]
        if not level:
            return False
    return any(isinstance(each, (dict, list)) for each in level)
