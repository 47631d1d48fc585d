"""The one written form of names, addresses and domains, by which two mentions are seen to be of the same. Pure.

Every function takes its own results as they are, so it does not matter how often a text passed through. Phone numbers have none:
without a country they cannot be told apart.
"""

import re
import unicodedata
from functools import lru_cache
from typing import Final

import idna

_PLAIN_LETTERS: Final = str.maketrans(
    {"ł": "l", "ø": "o", "đ": "d", "æ": "ae", "œ": "oe", "þ": "th", "ð": "d", "ı": "i"}
)
_EMAIL: Final = re.compile(r"[^@\s,;<>\"]{1,64}@([^@\s,;<>\"]+)")
_HOST: Final = re.compile(
    r"(?:(?:[a-z][a-z0-9+.-]*:)?//(?:[^/?#@\s]*@)?)?([^/?#@:\s]+)(?::\d*)?(?:[/?#].*)?", re.IGNORECASE
)
_MAX_HOST: Final = 253


def one_line(text: str) -> str:
    """The text on one line: single blanks, no control characters, Unicode form C."""
    if not text.isprintable():
        text = "".join(" " if unicodedata.category(character) == "Cc" else character for character in text)
    return unicodedata.normalize("NFC", " ".join(text.split()))


def lines(text: str) -> str:
    """The text with its lines, ends of lines in one form, blank ends cut off, Unicode form C."""
    whole = unicodedata.normalize("NFC", text.replace("\r\n", "\n").replace("\r", "\n"))
    return "".join(each for each in whole if each in "\n\t" or unicodedata.category(each) != "Cc").strip()


def fold(text: str) -> str:
    """For comparing and searching: no case, no accents, single blanks. ``Łukasz  MÜLLER`` and ``lukasz muller`` are alike.

    Marks of scripts in which they make another letter, such as kana, stay.
    """
    if text.isascii():
        return " ".join(text.lower().split())
    letters = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", text).casefold()).translate(_PLAIN_LETTERS)
    return " ".join("".join(letter for letter in letters if not _is_unseen(letter)).split())


def _is_unseen(letter: str) -> bool:
    return "\u0300" <= letter <= "\u036f" or unicodedata.category(letter) == "Cf"


def email_of(text: str) -> str | None:
    """The address in lower case, its domain in ASCII; ``None`` when it is none.

    Addresses that differ in case alone are one: no provider that people use tells them apart.
    """
    bare = one_line(text).removeprefix("<").removesuffix(">")
    if bare[:7].lower() == "mailto:":
        bare = bare[7:]
    matched = _EMAIL.fullmatch(bare.strip())
    host = _ascii(matched[1]) if matched else None
    if matched is None or host is None:
        return None
    return f"{unicodedata.normalize('NFC', matched[0].rpartition('@')[0].lower())}@{host}"


def domain_of(text: str) -> str | None:
    """The domain of a web site as a key: ASCII, lower case, without scheme, ``www.``, port and path; ``None`` when it is none."""
    matched = _HOST.fullmatch(one_line(text))
    host = _ascii(matched[1]) if matched else None
    if host is None:
        return None
    while host.startswith("www.") and "." in host[4:]:
        host = host[4:]
    return host


@lru_cache(maxsize=1024)
def _ascii(host: str) -> str | None:
    """A host name in its ASCII form, by the rules of IDNA 2008; ``None`` for what is none, a number for an address included."""
    try:
        name = idna.encode(host.rstrip("."), uts46=True, transitional=False).decode("ascii").lower()
    except idna.IDNAError:
        return None
    labels = name.split(".")
    if len(labels) < 2 or labels[-1].isdigit() or len(name) > _MAX_HOST:
        return None
    return name
