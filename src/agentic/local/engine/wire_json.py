"""JSON as it comes over the wire, without what Python reads and nobody else keeps: NaN, halves of surrogate pairs."""

from __future__ import annotations

import json
import re
from typing import Any, NoReturn

_ESCAPE = re.compile(
    r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(u[dD][89a-fA-F][0-9a-fA-F]{2})|.)"
)
"""An escape, told apart by its group: half a surrogate pair, as a text cut in the middle of an emoji ends."""


def loads(text: str | bytes) -> Any:
    """Decode JSON; half a surrogate pair becomes U+FFFD, as the real server reads it.

    Raises:
        ValueError: it is none, holds NaN or an infinity, or is nested too deeply to be read.
    """
    if isinstance(text, bytes):
        text = text.decode(json.detect_encoding(text))
    if "\\ud" in text or "\\uD" in text:
        text = _ESCAPE.sub(_whole, text)
    try:
        return json.loads(text, parse_constant=_refuse)
    except RecursionError as deep:
        raise ValueError("it is nested too deeply") from deep


def _whole(escape: re.Match[str]) -> str:
    return escape[0] if escape[1] is None else r"\ufffd"


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no JSON number")
