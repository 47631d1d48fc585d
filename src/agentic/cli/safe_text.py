"""Text of models, vendors and strangers, made safe to print: what could move the cursor or turn the reading direction is spelled out.

A card that a person approves must not be able to look like another one (A1).
"""

import unicodedata

_KEPT = frozenset("\n")
_REVERSING = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


def safe(text: str) -> str:
    """The text with control, direction and separator characters as escapes; line feeds stay."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(_escaped(character) if _unsafe(character) else character for character in text)


def safe_line(text: str) -> str:
    """As ``safe``, on one line."""
    return safe(text).replace("\n", "\\n")


def _unsafe(character: str) -> bool:
    if character in _KEPT:
        return False
    return character in _REVERSING or unicodedata.category(character) in ("Cc", "Cs", "Zl", "Zp")


def _escaped(character: str) -> str:
    return character.encode("unicode_escape", "surrogatepass").decode("ascii")
