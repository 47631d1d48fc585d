"""Shortens a text to a number of encoded bytes: its head, a note of what is left out and where it is kept, its tail.

It cuts between characters as a reader counts them (no half emoji, no accent without its letter), and it measures what the
text costs inside JSON, escapes included.
"""

from __future__ import annotations

import unicodedata
from typing import Final

from agentic.contract.encoding import encoded_size

HEAD_PERCENT: Final = 60
TAIL_PERCENT: Final = 20
_MIN_SHOWN_BYTES: Final = 16
_MAX_CLUSTER: Final = 32
_QUOTES: Final = 2
_JOINER: Final = "\u200d"
_REGIONAL: Final = ("\U0001f1e6", "\U0001f1ff")
_SKIN_TONES: Final = ("\U0001f3fb", "\U0001f3ff")
_TAGS: Final = ("\U000e0020", "\U000e007f")


def excerpt(text: str, max_bytes: int, *, kept_as: str | None = None) -> str | None:
    """Return head and tail of `text` with a note between, in at most `max_bytes` bytes once encoded as a JSON string.

    The head takes at most 60 % of the bytes and the tail at most 20 %. The note counts in bytes of UTF-8. `None` when the limit
    has no room for the note and a few characters; the caller has already seen that the whole text does not fit.

    Args:
        text: without lone surrogates.
        max_bytes: the limit of the encoded text, its quotes included.
        kept_as: id of the artifact that keeps the whole; the note names it where there is room.

    Source: B1, ADR 0014.
    """
    total = len(text.encode())
    # Written with the largest counts it can hold: the real note is never longer.
    free = max_bytes - _QUOTES - _encoded(_note(total, total, kept_as))
    if free < _MIN_SHOWN_BYTES:
        return None if kept_as is None else excerpt(text, max_bytes)
    head_bytes = min(max_bytes * HEAD_PERCENT // 100, free * HEAD_PERCENT // (HEAD_PERCENT + TAIL_PERCENT))
    tail_bytes = min(max_bytes * TAIL_PERCENT // 100, free - head_bytes)
    head = text[: _head_length(text, head_bytes)]
    tail = text[_tail_start(text, tail_bytes, len(head)) :]
    left_out = total - len(head.encode()) - len(tail.encode())
    return head + _note(left_out, total, kept_as) + tail


def _note(left_out: int, total: int, kept_as: str | None) -> str:
    where = "" if kept_as is None else f", kept as artifact {kept_as}"
    return f"\n[... {left_out} of {total} bytes left out{where} ...]\n"


def _head_length(text: str, budget: int) -> int:
    """Characters of the longest head that takes at most `budget` bytes inside a JSON string and ends between two characters."""
    low, high = 0, min(len(text), max(budget, 0))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if _encoded(text[:middle]) <= budget else (low, middle - 1)
    for length in range(low, max(low - _MAX_CLUSTER, 0), -1):
        if _between_characters(text, length):
            return length
    return low


def _tail_start(text: str, budget: int, head: int) -> int:
    """Where the longest tail begins, by the same measure, behind the head."""
    low, high = max(head, len(text) - max(budget, 0)), len(text)
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if _encoded(text[middle:]) <= budget else (middle + 1, high)
    for position in range(low, min(low + _MAX_CLUSTER, len(text))):
        if _between_characters(text, position):
            return position
    return low


def _between_characters(text: str, position: int) -> bool:
    """Whether a reader sees two characters meet here. Covers marks, joined emoji, skin tones, flags and CR LF."""
    if position in (0, len(text)):
        return True
    before, after = text[position - 1], text[position]
    if before == _JOINER or after == _JOINER or (before == "\r" and after == "\n"):
        return False
    if unicodedata.category(after).startswith("M") or _within(after, _SKIN_TONES) or _within(after, _TAGS):
        return False
    if _within(before, _REGIONAL) and _within(after, _REGIONAL):
        return _flags_before(text, position) % 2 == 0
    return True


def _flags_before(text: str, position: int) -> int:
    start = position
    while start > 0 and _within(text[start - 1], _REGIONAL):
        start -= 1
    return position - start


def _within(character: str, span: tuple[str, str]) -> bool:
    return span[0] <= character <= span[1]


def _encoded(text: str) -> int:
    """Bytes of a text inside a JSON string, without its quotes."""
    return encoded_size(text) - _QUOTES
