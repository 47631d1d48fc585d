"""Facts about a call that its arguments do not hold, such as whether its recipient is new: declared, resolved when a rule needs them.

A tool names the facts rules may ask about (``policy_facts``); the deployment registers how each is found out. Policy itself reads no
domain data.
"""

import asyncio
import logging
import math
import re
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from types import MappingProxyType
from typing import Any, Protocol

from pydantic import BaseModel

from agentic.contract.errors import ProgramFault
from agentic.services.policy.expressions import FactType
from agentic.services.tools.context import CallContext
from agentic.services.tools.models import ToolSpec
from agentic.services.tools.registry import RESERVED_FACTS, URL_SEEN

_FACT_NAME = re.compile(r"[a-z][a-z0-9_]{0,63}")
_MAX_DEPTH = 16
_log = logging.getLogger(__name__)


class FactResolver(Protocol):
    """Finds one fact out, read-only, under the call's own principal and deadline. Raises when it cannot tell."""

    async def __call__(self, ctx: CallContext, args: BaseModel, /) -> Any:
        """The fact, as JSON data of the declared type."""
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class Fact:
    """A declared fact.

    Attributes:
        name: as rules write it after ``facts.``.
        type: what the resolver returns, checked when rules are saved and when it answers. ``json`` is checked for being JSON alone.
        resolve: how it is found out. ``None`` is no answer: a rule that needs the fact then fails closed.
    """

    name: str
    resolve: FactResolver
    type: FactType = "json"


@dataclass(frozen=True, kw_only=True, slots=True)
class NoAnswer:
    """A fact that could not be found out; ``message`` says why without a value."""

    message: str


class FactRegistry:
    """The facts of a deployment.

    Raises:
        ProgramFault: a name is no identifier, reserved, or declared twice.
    """

    def __init__(self, facts: Iterable[Fact] = ()) -> None:
        found: dict[str, Fact] = {}
        for fact in facts:
            if not _FACT_NAME.fullmatch(fact.name) or fact.name in RESERVED_FACTS:
                reserved = ", ".join(sorted(RESERVED_FACTS))
                raise ProgramFault(
                    f"{fact.name!r} cannot name a fact: a name is a lower-case identifier, and none of {reserved}"
                )
            if fact.name in found:
                raise ProgramFault(f"the fact {fact.name} is declared twice; keep one")
            found[fact.name] = fact
        self._facts: Mapping[str, Fact] = MappingProxyType(found)

    def __iter__(self) -> Iterator[Fact]:
        return iter(self._facts.values())

    @property
    def names(self) -> frozenset[str]:
        """What tools may declare."""
        return frozenset(self._facts)

    def get(self, name: str) -> Fact | None:
        """The fact of this name, or ``None``."""
        return self._facts.get(name)

    async def find(self, name: str, ctx: CallContext, args: BaseModel) -> Any:
        """One fact of a call outside any rule, such as for its preview; ``None`` when it cannot be told."""
        value = (await FactReader(self, ctx, args).read([name]))[name]
        return None if isinstance(value, NoAnswer) else value

    def types_for(self, spec: ToolSpec) -> tuple[tuple[str, FactType], ...]:
        """What rules may ask about calls of a tool, in a stable order: the facts it names, and ``url_seen`` for open egress."""
        declared = {*spec.policy_facts, *([URL_SEEN] if spec.egress == "open" else [])}
        return tuple((name, self._facts[name].type) for name in sorted(declared) if name in self._facts)


class FactReader:
    """The facts of one call, each found out at most once, however many rules ask (D4).

    Args:
        known: values that are given rather than found out.
    """

    def __init__(
        self, registry: FactRegistry, ctx: CallContext, args: BaseModel, known: Mapping[str, Any] | None = None
    ) -> None:
        self._registry = registry
        self._ctx = ctx
        self._args = args
        self._found: dict[str, Any] = {name: self._checked(name, value) for name, value in (known or {}).items()}

    async def read(self, names: Collection[str]) -> Mapping[str, Any]:
        """The values of these facts; a `NoAnswer` for each that cannot be told before the call's deadline."""
        missing = [name for name in sorted(names) if name not in self._found]
        if missing:
            self._found.update(zip(missing, await asyncio.gather(*map(self._resolve, missing)), strict=True))
        return {name: self._found[name] for name in names}

    @property
    def found(self) -> Mapping[str, Any]:
        """What was found out so far."""
        return MappingProxyType(self._found)

    async def _resolve(self, name: str) -> Any:
        fact = self._registry.get(name)
        if fact is None:
            return NoAnswer(message=f"this deployment registers no fact {name}")
        limit = asyncio.timeout(self._ctx.remaining_s)
        try:
            async with limit:
                return self._checked(name, await fact.resolve(self._ctx, self._args))
        except Exception as error:  # noqa: BLE001 - whatever it is, the fact is not known, and rules that need it fail closed
            _log.warning("the fact %s of %s could not be told (%s)", name, self._ctx.tool, type(error).__name__)
            late = isinstance(error, TimeoutError) and limit.expired()
            return NoAnswer(
                message=f"the fact {name} " + ("took too long" if late else f"failed ({type(error).__name__})")
            )

    def _checked(self, name: str, value: Any) -> Any:
        fact = self._registry.get(name)
        kind = fact.type if fact is not None else "json"
        try:
            plain = _json(value, _MAX_DEPTH)
        except ValueError as error:
            return NoAnswer(message=f"the fact {name} is no JSON value: {error}")
        if plain is None:
            return NoAnswer(message=f"the fact {name} has no answer")
        if not _IS[kind](plain):
            return NoAnswer(message=f"the fact {name} is declared as {kind} and came as {type(value).__name__}")
        return plain


_IS: Mapping[FactType, Callable[[Any], bool]] = {
    "bool": lambda value: isinstance(value, bool),
    "number": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    "string": lambda value: isinstance(value, str),
    "json": lambda _value: True,
}


def _json(value: Any, depth: int) -> Any:
    """A value as conditions take it. A decimal becomes a whole number or the nearest double, as a literal of a condition does."""
    match value:
        case None | bool():
            return value
        case str():
            value.encode()  # half a surrogate pair raises, a ValueError as below
            return str(value)
        case int():
            return int(value)
        case float() if math.isfinite(value):
            return float(value)
        case Decimal() if value.is_finite():
            return int(value) if value == value.to_integral_value() and abs(value) < 2**63 else float(value)
        case list() | tuple() if depth:
            return [_json(item, depth - 1) for item in value]
        case Mapping() if depth and all(isinstance(key, str) for key in value):
            return {key: _json(item, depth - 1) for key, item in value.items()}
        case _:
            raise ValueError(f"{type(value).__name__} has no place in it")


AwaitableTexts = Callable[[CallContext], Awaitable[Iterable[str]]]
"""The words of a run that were not the model's own: what the user wrote and what calls returned."""
