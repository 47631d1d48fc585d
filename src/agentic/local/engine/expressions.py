"""The match and key expressions of function declarations, read and evaluated.

A small part of CEL: paths under `event` and `async`, literals, comparisons, `+`, `!`, `&&`, `||` and parentheses. That
is what triggers, waits, cancellations, concurrency and idempotency keys use. What cannot be read is refused when a
function registers, never guessed at. Anything richer is the real server's job.
"""

from __future__ import annotations

import functools
import json
import logging
import re
from collections.abc import Callable, Mapping
from typing import Any

from agentic.local.engine.errors import ExpressionError

Scope = Mapping[str, Any]
Evaluator = Callable[[Scope], Any]

_TOKEN = re.compile(
    r"""\s*(?:(?P<number>\d+(?:\.\d+)?)|(?P<string>'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")"""
    r"""|(?P<name>[A-Za-z_]\w*)|(?P<sign>&&|\|\||==|!=|<=|>=|[-<>!+().\[\]]))"""
)
_log = logging.getLogger(__name__)
_QUOTES = re.compile("['\"]")
_LITERALS: Mapping[str, object] = {"true": True, "false": False, "null": None}


class _Absent(Exception):
    """A path leads nowhere, or two values cannot be compared: the expression has no value."""


def matches(expression: str, scope: Scope) -> bool:
    """Whether the expression is true; an absent path or a comparison of unlike types is no match.

    Args:
        expression: the text of the declaration.
        scope: `event` and, for waits and cancellations, `async`: the events as JSON objects.

    Raises:
        ExpressionError: the text cannot be read.
    """
    try:
        return parse(expression)(scope) is True
    except _Absent:
        return False


def key_of(expression: str, scope: Scope) -> str:
    """The value of a key expression as JSON; an absent path counts as null, so all such events share one key.

    Raises:
        ExpressionError: the text cannot be read.
    """
    try:
        value = parse(expression)(scope)
    except _Absent:
        value = None
    return json.dumps(value, sort_keys=True)


@functools.lru_cache(maxsize=512)
def parse(expression: str) -> Evaluator:
    """Read an expression once; what comes back evaluates it.

    Raises:
        ExpressionError: the text cannot be read.
    """
    parser = _Parser(expression)
    evaluate = parser.either()
    if parser.tokens:
        raise parser.error(f"{parser.tokens[0][1]!r} is not expected there")
    return evaluate


class _Parser:
    """Recursive descent, one method a level of precedence, loosest first."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = list(self._split(text))

    def _split(self, text: str) -> list[tuple[str, str]]:
        found, at, text = [], 0, text.rstrip()
        while at < len(text):
            match = _TOKEN.match(text, at)
            if match is None or match.lastgroup is None:
                raise self.error(f"{text[at:].strip()[:10]!r} is not known")
            found.append((match.lastgroup, match.group(match.lastgroup)))
            at = match.end()
        return found

    def error(self, reason: str) -> ExpressionError:
        return ExpressionError(expression=self.text, reason=reason)

    def take(self, *signs: str) -> str | None:
        if self.tokens and self.tokens[0][0] == "sign" and self.tokens[0][1] in signs:
            return self.tokens.pop(0)[1]
        return None

    def next(self) -> tuple[str, str]:
        if not self.tokens:
            raise self.error("it ends too early")
        return self.tokens.pop(0)

    def either(self) -> Evaluator:
        left = self.both()
        while self.take("||"):
            left = _either(left, self.both())
        return left

    def both(self) -> Evaluator:
        left = self.comparison()
        while self.take("&&"):
            left = _both(left, self.comparison())
        return left

    def comparison(self) -> Evaluator:
        left = self.sum()
        sign = self.take("==", "!=", "<=", ">=", "<", ">")
        return _comparison(sign, left, self.sum()) if sign else left

    def sum(self) -> Evaluator:
        left = self.unary()
        while self.take("+"):
            left = _sum(left, self.unary())
        return left

    def unary(self) -> Evaluator:
        if self.take("!"):
            inner = self.unary()
            return lambda scope: not _boolean(inner(scope))
        if self.take("-"):
            kind, text = self.next()
            if kind != "number":
                raise self.error("'-' stands only before a number")
            number = -_number(text)
            return lambda _: number
        return self.primary()

    def primary(self) -> Evaluator:
        if self.take("("):
            inner = self.either()
            if not self.take(")"):
                raise self.error("a ')' is missing")
            return inner
        kind, text = self.next()
        if kind in ("number", "string"):
            value: object = _number(text) if kind == "number" else _string(text)
            return lambda _: value
        if kind == "name" and text in _LITERALS:
            literal = _LITERALS[text]
            return lambda _: literal
        if kind == "name" and text in ("event", "async"):
            return self.path(text)
        raise self.error(f"{text!r} is not known")

    def path(self, root: str) -> Evaluator:
        keys: list[str | int] = [root]
        while sign := self.take(".", "["):
            kind, text = self.next()
            if sign == "." and kind == "name":
                keys.append(text)
            elif sign == "[" and kind in ("string", "number") and self.take("]"):
                keys.append(_string(text) if kind == "string" else int(text))
            else:
                raise self.error(f"the path breaks off at {text!r}")
        return lambda scope: _walk(scope, keys)


def _walk(scope: Scope, keys: list[str | int]) -> Any:
    value: Any = scope
    for key in keys:
        try:
            value = value[key]
        except (KeyError, IndexError, TypeError) as absent:
            raise _Absent from absent
    return value


def _number(text: str) -> int | float:
    return float(text) if "." in text else int(text)


def _string(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text[1:-1])


def _boolean(value: object) -> bool:
    if not isinstance(value, bool):
        raise _Absent
    return value


def _comparable(left: object, right: object) -> bool:
    """Numbers with numbers, otherwise like with like: true is not 1."""
    if isinstance(left, bool) or isinstance(right, bool):
        return type(left) is type(right)
    return (isinstance(left, int | float) and isinstance(right, int | float)) or type(left) is type(right)


def _either(left: Evaluator, right: Evaluator) -> Evaluator:
    def evaluate(scope: Scope) -> bool:
        try:
            if _boolean(left(scope)):
                return True
        except _Absent:
            if _boolean(right(scope)):
                return True
            raise
        return _boolean(right(scope))

    return evaluate


def _both(left: Evaluator, right: Evaluator) -> Evaluator:
    return lambda scope: _boolean(left(scope)) and _boolean(right(scope))


def _sum(left: Evaluator, right: Evaluator) -> Evaluator:
    def evaluate(scope: Scope) -> Any:
        first, second = left(scope), right(scope)
        if not _comparable(first, second) or not isinstance(first, str | int | float) or isinstance(first, bool):
            raise _Absent
        return first + second

    return evaluate


def _comparison(sign: str, left: Evaluator, right: Evaluator) -> Evaluator:
    def evaluate(scope: Scope) -> bool:
        first, second = left(scope), right(scope)
        if sign in ("==", "!="):
            if "async" in scope and _QUOTES.search(f"{first}{second}"):
                # The real server never matches a value that holds a quote; matching it here would hide that.
                _log.warning("a value that holds a quote never matches; compare ids: %.80s and %.80s", first, second)
                raise _Absent
            same = _comparable(first, second) and bool(first == second)
            return same if sign == "==" else not same
        if not _comparable(first, second) or not isinstance(first, str | int | float):
            raise _Absent
        if sign in ("<", "<="):
            return bool(first < second) or (sign == "<=" and bool(first == second))
        return bool(first > second) or (sign == ">=" and bool(first == second))

    return evaluate
