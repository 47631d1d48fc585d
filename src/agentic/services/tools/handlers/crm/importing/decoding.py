"""Bytes of an export to text: UTF-8 first, Windows-1252 where a line is not UTF-8, and mojibake undone where that is certain.

Exports are often glued together from several sources, so the encoding is decided per line.
"""

import re
import unicodedata
from dataclasses import dataclass

from agentic.services.tools.handlers.crm.importing.problems import CsvProblem

_BOM = b"\xef\xbb\xbf"
_TRAIL = "[" + "".join(bytes([byte]).decode("cp1252", "ignore") or chr(byte) for byte in range(0x80, 0xC0)) + "]"
# What becomes of U+00A0 to U+017F, of the Romanian s and t with comma, and of quotes, dashes, bullets, trade mark and euro.
_DAMAGED = re.compile(rf"(?:[\x00-\x7f]|[ÂÃ]{_TRAIL}|[ÄÅ](?![ŠŽ]){_TRAIL}|È[˜™š›]|â[€‚„]{_TRAIL})*")
# A capitalised word that ends in such a letter before a mark of punctuation ("AMANHÃ…") looks the same.
_DOUBTFUL = re.compile(r"[A-Z][ÂÃÄÅ][‘’“”–—…](?![A-Za-z])")
_UTF16_BOMS = (b"\xff\xfe", b"\xfe\xff")


@dataclass(frozen=True, kw_only=True, slots=True)
class Decoded:
    """Text and how it was read: ``utf-8``, ``cp1252`` or ``mixed``."""

    text: str
    encoding: str


def decode(raw: bytes, name: str) -> Decoded:
    """Read the whole file.

    Args:
        raw: its bytes.
        name: how the file is called in a complaint.

    Raises:
        CsvProblem: UTF-16, binary data, or a line that is neither UTF-8 nor Windows-1252.
    """
    if raw.startswith(_UTF16_BOMS):
        raise CsvProblem(f'{name} is UTF-16 ("Unicode text"); save it again as "CSV UTF-8"')
    if b"\x00" in raw:
        raise CsvProblem(f"{name} holds binary data and is no CSV; export the contacts as CSV")
    body = raw.removeprefix(_BOM)
    try:
        return Decoded(text=body.decode("utf-8"), encoding="utf-8")
    except UnicodeDecodeError:
        return _by_line(body, name)


def _by_line(body: bytes, name: str) -> Decoded:
    lines: list[str] = []
    utf8_seen = False
    for number, line in enumerate(body.split(b"\n"), start=1):
        try:
            lines.append(line.decode("utf-8"))
            utf8_seen = utf8_seen or not line.isascii()
        except UnicodeDecodeError:
            try:
                lines.append(line.decode("cp1252"))
            except UnicodeDecodeError as problem:
                raise CsvProblem(
                    f'{name}, line {number}: neither UTF-8 nor Windows-1252; save the file again as "CSV UTF-8"'
                ) from problem
    return Decoded(text="\n".join(lines), encoding="mixed" if utf8_seen else "cp1252")


def repair(text: str) -> str:
    """Undo UTF-8 that was once read as Windows-1252 (``MÃ¼ller``) where nothing else can be meant.

    Every character beyond ASCII must be part of a sequence that such a mistake makes out of the letters of Latin alphabets, the
    usual typographic signs or the euro sign; so doing it forward again gives exactly this text. ``KNÍŽKA`` stays.
    """
    for _ in range(2):  # twice wrong does happen; more often is damage of another kind
        if text.isascii() or not _DAMAGED.fullmatch(text) or _DOUBTFUL.search(text):
            return text
        try:
            better = _as_bytes(text).decode("utf-8")
        except UnicodeDecodeError:
            return text
        if any(unicodedata.category(character) in {"Cc", "Cn"} for character in better if character not in "\t\r\n"):
            return text
        text = better
    return text


def _as_bytes(text: str) -> bytes:
    """The bytes this text was read from. Windows-1252 leaves five unassigned; they come through as the control of that number."""
    return b"".join(
        character.encode("latin-1") if "\x80" <= character <= "\x9f" else character.encode("cp1252")
        for character in text
    )
