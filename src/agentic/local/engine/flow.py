"""What a function declares about when its runs start and how long they may take, read into values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Literal

from agentic.local.engine.moments import parse_duration

PRIORITY_SPAN = 600
"""A run is moved forward or back by at most this many seconds."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Rate:
    """`limit` starts a `period`, evenly spaced, of which `burst` more than one may come at once.

    Attributes:
        limit: starts, 1 or more.
        period: over which they are spread.
        burst: how many may come before their time.
        key: an expression; each value has a rate of its own. None is one rate for the function.
    """

    limit: int
    period: timedelta
    burst: int
    key: str | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Debounce:
    """Start once `period` has passed without another event of the same key, with the last; at `timeout` in any case."""

    period: timedelta
    timeout: timedelta | None
    key: str | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Batch:
    """Start with up to `max_size` events of one key at once, or with what came until `timeout` after the first."""

    max_size: int
    timeout: timedelta
    key: str | None
    condition: str | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Singleton:
    """One run at a time for each key; another event is dropped (`skip`) or ends the running one (`cancel`)."""

    mode: Literal["skip", "cancel"]
    key: str | None


@dataclass(frozen=True, kw_only=True, slots=True)
class FlowControl:
    """All of it; None is a rule that the function does not have.

    Attributes:
        rate_limit: events beyond it start nothing, ever.
        throttle: runs beyond it start later.
        debounce: starts with the last event of many.
        batch: starts with many events.
        singleton: one run at a time.
        priority: an expression for the seconds by which a run is put before others, at most `PRIORITY_SPAN` either way.
        start_timeout: after which a run whose first call was not made is cancelled.
        finish_timeout: after which a run is cancelled, from its first call on.
    """

    rate_limit: Rate | None
    throttle: Rate | None
    debounce: Debounce | None
    batch: Batch | None
    singleton: Singleton | None
    priority: str | None
    start_timeout: timedelta | None
    finish_timeout: timedelta | None

    @property
    def expressions(self) -> Iterator[str | None]:
        """Every expression in it."""
        for rule in (self.rate_limit, self.throttle, self.debounce, self.batch, self.singleton):
            yield None if rule is None else rule.key
        yield None if self.batch is None else self.batch.condition
        yield self.priority


def read_flow(config: Mapping[str, Any]) -> FlowControl:
    """Read the flow control of one entry of a function list.

    Raises:
        ValueError: a rule that means nothing; the message ends a sentence that begins with the function.
        KeyError: an entry is malformed.
        TypeError: as above.
    """
    rate, throttle, debounce = config.get("rateLimit"), config.get("throttle"), config.get("debounce")
    batch, singleton, timeouts = config.get("batchEvents"), config.get("singleton"), config.get("timeouts") or {}
    priority = (config.get("priority") or {}).get("run")
    return FlowControl(
        # The real server lets a tenth of a rate limit come at once, and of a throttle what is declared.
        rate_limit=_rate(rate, burst=int(rate["limit"]) // 10) if rate else None,
        throttle=_rate(throttle, burst=int(throttle.get("burst") or 0)) if throttle else None,
        debounce=_debounce(debounce) if debounce else None,
        batch=_batch(batch) if batch else None,
        singleton=Singleton(mode=_mode(singleton["mode"]), key=singleton.get("key") or None) if singleton else None,
        priority=priority or None,
        start_timeout=_maybe_duration(timeouts.get("start")),
        finish_timeout=_maybe_duration(timeouts.get("finish")),
    )


def _rate(entry: Mapping[str, Any], *, burst: int) -> Rate:
    limit = int(entry["limit"])
    if limit < 1:
        raise ValueError("has a rate of less than one: set its limit to 1 or more")
    return Rate(limit=limit, period=parse_duration(entry["period"]), burst=burst, key=entry.get("key") or None)


def _debounce(entry: Mapping[str, Any]) -> Debounce:
    return Debounce(
        period=parse_duration(entry["period"]),
        timeout=_maybe_duration(entry.get("timeout")),
        key=entry.get("key") or None,
    )


def _batch(entry: Mapping[str, Any]) -> Batch:
    if not entry.get("timeout"):
        raise ValueError("has a batch without a time-out: set one")
    return Batch(
        max_size=int(entry["maxSize"]),
        timeout=parse_duration(entry["timeout"]),
        key=entry.get("key") or None,
        condition=entry.get("if") or None,
    )


def _mode(text: str) -> Literal["skip", "cancel"]:
    match text:
        case "skip" | "cancel":
            return text
        case _:
            raise ValueError(f"has a singleton mode {text!r}: use skip or cancel")


def _maybe_duration(text: str | None) -> timedelta | None:
    return parse_duration(text) if text else None
