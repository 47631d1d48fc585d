"""Text of models, vendors and strangers, made safe to print: what nobody sees, or moves the cursor, or turns the reading, is spelled out.

A card that a person approves must not be able to look like another one (A1).
"""

import unicodedata

_KEPT = frozenset("\n")
_JOINING = frozenset("\u200c\u200d\ufe0e\ufe0f")
"""Part of how some scripts and emoji are written; between ASCII they are there to hide."""
_BLANK = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u3164\uffa0")
"""Counted as letters or marks, and drawn as nothing."""


def safe(text: str) -> str:
    """The text with control, direction, separator and invisible characters as escapes; line feeds stay."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        _escaped(character) if _unsafe(character, before) else character
        for before, character in zip(" " + text, text, strict=False)
    )


def safe_line(text: str) -> str:
    """As ``safe``, on one line."""
    return safe(text).replace("\n", "\\n")


def _unsafe(character: str, before: str) -> bool:
    if character in _KEPT:
        return False
    if character in _JOINING:
        return before.isascii()
    if "\U000e0100" <= character <= "\U000e01ef":
        return (
            unicodedata.category(before) != "Lo"
        )  # one says which form of an ideograph is meant, a row of them is hidden text
    if character in _BLANK or "\ufe00" <= character <= "\ufe0d":
        return True
    return unicodedata.category(character) in ("Cc", "Cf", "Cs", "Zl", "Zp")


def _escaped(character: str) -> str:
    return character.encode("unicode_escape", "surrogatepass").decode("ascii")
