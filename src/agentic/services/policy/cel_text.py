"""Reads of a condition what its compiler does not tell: which facts and arguments it names, and a few traps before they bite.

Nothing is evaluated. What this overlooks is caught when the condition runs: a name without a value is an error, and an error
never lets a call through.
"""

import re
from dataclasses import dataclass
from functools import lru_cache

_TOKEN = re.compile(
    r"""
    (?P<comment>//[^\n]*)
  | (?P<string>(?:[rR][bB]?|[bB][rR]?)?(?:'''(?:\\.|[^\\])*?'''|\"\"\"(?:\\.|[^\\])*?\"\"\"|'(?:\\.|[^\\'\n])*'|"(?:\\.|[^\\"\n])*"))
    """,
    re.VERBOSE | re.DOTALL,
)
_FACT = re.compile(r"(?<![\w.])facts\s*\.\s*([A-Za-z_]\w*)")
_ARGUMENT = re.compile(r"(?<![\w.])args\s*\.\s*([A-Za-z_]\w*)")
_GUARD = re.compile(r"\bhas\s*\(\s*args\s*\.\s*([A-Za-z_]\w*)\s*\)")
_FALSE_GUARD = re.compile(r"\bhas\s*\(\s*(facts|principal|run)\b")
_CALLS_MATCHES = re.compile(r"\bmatches\s*\(\s*$")


@dataclass(frozen=True, kw_only=True, slots=True)
class CelText:
    """What a condition's text shows.

    Attributes:
        facts: names after ``facts.``.
        arguments: names after ``args.``.
        guarded: arguments that a ``has(args.…)`` asks for.
        patterns: string literals handed to ``matches``, as written.
        unguarded: the text with every ``has(args.…)`` taken as true, to be type-checked where arguments have types.
        trap: what must not stand in a condition, in words; ``None`` when nothing of the kind does.
    """

    facts: frozenset[str]
    arguments: frozenset[str]
    guarded: frozenset[str]
    patterns: tuple[str, ...]
    unguarded: str
    trap: str | None


@lru_cache(maxsize=8192)
def read_cel(text: str) -> CelText:
    """Read a condition; kept, because a call asks it of every rule."""
    code, patterns = _code(text)
    return CelText(
        facts=frozenset(_FACT.findall(code)),
        arguments=frozenset(_ARGUMENT.findall(code)),
        guarded=frozenset(_GUARD.findall(code)),
        patterns=patterns,
        unguarded=_without_guards(text, code),
        trap=_trap(code),
    )


def _code(text: str) -> tuple[str, tuple[str, ...]]:
    """The text with comments and the insides of strings blanked, every other character in its place."""
    patterns, pieces, end = [], [], 0
    for token in _TOKEN.finditer(text):
        pieces.append(text[end : token.start()])
        if token["string"] and _CALLS_MATCHES.search("".join(pieces)) and text[token.end() :].lstrip()[:1] == ")":
            patterns.append(token["string"])
        pieces.append('"' + " " * (len(token[0]) - 2) + '"' if token["string"] else " " * len(token[0]))
        end = token.end()
    pieces.append(text[end:])
    return "".join(pieces), tuple(patterns)


def _without_guards(text: str, code: str) -> str:
    pieces, end = [], 0
    for guard in _GUARD.finditer(code):
        pieces += [text[end : guard.start()], "true".ljust(guard.end() - guard.start())]
        end = guard.end()
    return "".join([*pieces, text[end:]])


def _trap(code: str) -> str | None:
    if false_guard := _FALSE_GUARD.search(code):
        return (
            f"has() does not work on {false_guard[1]}: it would give the value itself. Every declared fact has a value, "
            "and one that does not answer counts as an error"
        )
    if "`" in code:
        return "names in backticks are not read; write args.name, or args['odd-name'] for a name that is no identifier"
    return None
