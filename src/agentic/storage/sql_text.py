"""Reads SQL just well enough to cut a script into statements and to compare two scripts.

Knows strings, quoted names, dollar quotes, comments, parentheses and `begin atomic` bodies; what a statement means is
Postgres' business.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

_NAME_START = r"A-Za-z_\x80-\U0010ffff"
_TOKEN = re.compile(
    rf"""
      (?P<space>\s+)
    | (?P<line_comment>--[^\n]*)
    | (?P<block_comment>/\*)
    | (?P<quoted>[eE]'(?:[^'\\]|\\.|'')*' | '(?:[^']|'')*' | "(?:[^"]|"")*")
    | (?P<dollar>\$(?:[{_NAME_START}][\w\x80-\U0010ffff]*)?\$)
    | (?P<word>[{_NAME_START}][\w$\x80-\U0010ffff]*)
    | (?P<other>.)
    """,
    re.VERBOSE | re.DOTALL,
)
_COMMENT_EDGE = re.compile(r"/\*|\*/")


class SqlTextError(ValueError):
    """A string, quoted name, dollar quote or comment begins and never ends."""


class Kind(Enum):
    """What a piece of SQL text is."""

    SPACE = "space"
    COMMENT = "comment"
    QUOTED = "quoted"
    """A string, a quoted name or a dollar-quoted body: its content is nobody's syntax."""
    WORD = "word"
    SYMBOL = "symbol"
    """Any other single character."""


@dataclass(frozen=True, slots=True)
class Token:
    """One piece of SQL: `text` is the script from `start` up to `end`."""

    kind: Kind
    text: str
    start: int
    end: int


def tokens(script: str) -> Iterator[Token]:
    """The pieces of a script, complete and in order.

    Raises:
        SqlTextError: Something quoted or commented never ends; the message names its line.
    """
    position = 0
    while found := _TOKEN.match(script, position):  # the last alternative takes any character
        kind, end = Kind.SYMBOL, found.end()
        match found.lastgroup:
            case "space":
                kind = Kind.SPACE
            case "line_comment":
                kind = Kind.COMMENT
            case "block_comment":
                kind, end = Kind.COMMENT, _end_of_comment(script, position)
            case "quoted":
                kind = Kind.QUOTED
            case "dollar":
                kind, end = Kind.QUOTED, _end_of_dollar_quote(script, position, found.group())
            case "word":
                kind = Kind.WORD
            case _:
                if found.group() in "'\"":
                    raise _unterminated(script, position, "quote")
        yield Token(kind, script[position:end], position, end)
        position = end


def split_statements(script: str) -> list[str]:
    """Cuts a script at its semicolons, as the Supabase CLI records it: trimmed, with comments, without the semicolon.

    A comment behind the last semicolon is a piece of its own. Executing it does nothing.

    Raises:
        SqlTextError: Something quoted or commented never ends.
    """
    statements: list[str] = []
    start = parentheses = nesting = 0
    previous = ""
    for token in tokens(script):
        if token.kind is Kind.WORD:
            word = token.text.lower()
            # a body of several statements: only here does `end` close something that semicolons do not
            if (word == "atomic" and previous == "begin") or (nesting and word == "case"):
                nesting += 1
            elif nesting and word == "end":
                nesting -= 1
            previous = word
        elif token.kind is Kind.SYMBOL:
            parentheses += {"(": 1, ")": -1}.get(token.text, 0)
            if token.text == ";" and parentheses <= 0 and nesting == 0:
                statements.append(script[start : token.start].strip())
                start, parentheses = token.end, 0
            previous = ""
    statements.append(script[start:].strip())
    return [statement for statement in statements if statement]


def essence(script: str) -> tuple[str, ...]:
    """A script without comments, white space and semicolons: equal for scripts that say the same."""
    return tuple(
        token.text for token in tokens(script) if token.kind not in (Kind.SPACE, Kind.COMMENT) and token.text != ";"
    )


def first_words(statement: str, count: int = 2) -> tuple[str, ...]:
    """The first words of a statement in lower case, comments passed over."""
    found: list[str] = []
    for token in tokens(statement):
        if token.kind is Kind.WORD:
            found.append(token.text.lower())
        elif token.kind not in (Kind.SPACE, Kind.COMMENT):
            break
        if len(found) == count:
            break
    return tuple(found)


def _end_of_comment(script: str, start: int) -> int:
    depth = 0
    for edge in _COMMENT_EDGE.finditer(script, start):
        depth += 1 if edge.group() == "/*" else -1
        if depth == 0:
            return edge.end()
    raise _unterminated(script, start, "comment")


def _end_of_dollar_quote(script: str, start: int, tag: str) -> int:
    end = script.find(tag, start + len(tag))
    if end < 0:
        raise _unterminated(script, start, f"quote {tag}")
    return end + len(tag)


def _unterminated(script: str, start: int, what: str) -> SqlTextError:
    line = script.count("\n", 0, start) + 1
    return SqlTextError(f"the {what} that begins in line {line} never ends")
