"""The match and key expressions of function declarations, read and evaluated as CEL.

They see `event` and, in waits and cancellations, `async`: the event objects. What does not compile is refused when a
function registers, never guessed at; what compiles and then has no value, such as a path that leads nowhere, matches
nothing.
"""

from __future__ import annotations

import functools
import json
import logging
import re
import sys
from collections.abc import Mapping
from typing import Any, Final

from cel_expr_python import cel  # type: ignore[import-untyped]

from agentic.local.engine.errors import ExpressionError

Scope = Mapping[str, Any]
"""`event` and, for waits and cancellations, `async`: the events as JSON objects."""

_NAMES: Final = ("event", "async")
_LARGEST: Final = int(sys.float_info.max)
_PATH = re.compile(r"""\bevent((?:\.[A-Za-z_]\w*|\[(?:\d+|'[^']*'|"[^"]*")\])+)""")
_KEY = re.compile(r"""\.(\w+)|\[(\d+)\]|\['([^']*)'\]|\["([^"]*)"\]""")
_FAULT = re.compile(r"ERROR: <input>:\d+:\d+: (.*)")
_CONTAINER = re.compile(r" \(in container '[^']*'\)")
_log = logging.getLogger(__name__)


class _Absent(Exception):
    """The expression has no value here: a path leads nowhere, values cannot be compared, a budget ran out."""


def parse(expression: str) -> None:
    """Check that an expression can be read.

    Raises:
        ExpressionError: it cannot.
    """
    _compiled(expression)


def matches(expression: str, scope: Scope) -> bool:
    """Whether the expression is true; one that has no value is no match.

    Args:
        expression: the text of the declaration.
        scope: the events it sees.

    Raises:
        ExpressionError: the text cannot be read.
    """
    if "async" in scope and _quoted(expression, scope):
        # The real server never matches a value that holds a quote; matching it here would hide that.
        _log.warning("a value that holds a quote never matches; compare ids: %.80s", expression)
        return False
    try:
        return _value(expression, scope) is True
    except _Absent:
        return False


def key_of(expression: str, scope: Scope) -> str:
    """The value of a key expression as JSON; one that has no value counts as null, so all such events share one key.

    Raises:
        ExpressionError: the text cannot be read.
    """
    try:
        value = _value(expression, scope)
    except _Absent:
        value = None
    return json.dumps(value, sort_keys=True, default=str)


def number_of(expression: str, scope: Scope) -> int | None:
    """The whole number that an expression comes to, or None where it comes to anything else or to nothing.

    Raises:
        ExpressionError: the text cannot be read.
    """
    try:
        value = _value(expression, scope)
    except _Absent:
        return None
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _value(expression: str, scope: Scope) -> Any:
    compiled = _compiled(expression)
    try:
        value = compiled.eval(_environment().Activation({name: _carried(seen) for name, seen in scope.items()}))
        kind, plain = value.type(), value.plain_value()
    except Exception as error:
        raise _Absent from error
    if kind == cel.Type.ERROR:
        raise _Absent
    return plain


@functools.lru_cache(maxsize=512)
def _compiled(expression: str) -> cel.Expression:
    try:
        return _environment().compile(expression)
    except (RuntimeError, TypeError, UnicodeEncodeError) as error:
        faults = [_CONTAINER.sub("", fault).strip() for fault in _FAULT.findall(str(error))]
        reason = "; ".join(faults) or "it holds what is no text"
        raise ExpressionError(expression=expression, reason=reason) from error


@functools.cache
def _environment() -> cel.Env:
    return cel.NewEnv(variables=dict.fromkeys(_NAMES, cel.Type.DYN))


def _quoted(expression: str, scope: Scope) -> bool:
    """Whether a value that the expression takes from the run's own event holds a quote."""
    for path in _PATH.findall(expression):
        value: Any = scope.get("event")
        for name, index, single, double in _KEY.findall(path):
            try:
                value = value[int(index)] if index else value[name or single or double]
            except (KeyError, IndexError, TypeError):
                value = None
                break
        if isinstance(value, str) and ("'" in value or '"' in value):
            return True
    return False


def _carried(value: Any) -> Any:
    """The value as CEL can carry it: whole numbers beyond 64 bits as doubles, half a surrogate pair replaced."""
    match value:
        case bool():
            return value
        case int() if not -(2**63) <= value < 2**63:
            return float(max(-_LARGEST, min(value, _LARGEST)))
        case str():
            return value if value.isascii() else value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        case list():
            return [_carried(entry) for entry in value]
        case dict():
            return {_carried(key): _carried(entry) for key, entry in value.items()}
        case _:
            return value
