"""What an app's answer to a call means, as a value.

Pure: bytes and headers in, one of a closed set of answers out. What each does to the run is `settle`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from agentic.local.engine.moments import parse_retry_after
from agentic.local.engine.wire_json import loads


@dataclass(frozen=True, kw_only=True, slots=True)
class Step:
    """One step that the function reports: done, failed, planned, or to be ended by the engine."""

    id: str
    op: str
    name: str
    label: str
    opts: Mapping[str, Any]
    data: Any
    error: Any

    @property
    def races(self) -> bool:
        """Whether its parallel group goes on after each step instead of after the last."""
        return self.opts.get("parallelMode") == "race"


@dataclass(frozen=True, kw_only=True, slots=True)
class Returned:
    """200: the function returned, the run is over."""

    value: Any
    version: int | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Reported:
    """206: one step, or the several of a parallel group."""

    steps: tuple[Step, ...]
    retriable: bool
    version: int | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Raised:
    """The function raised, the app answered nonsense, or the connection died in mid-call: an attempt is spent."""

    error: dict[str, Any]
    retriable: bool
    retry_at: datetime | None
    version: int | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Unreached:
    """The call never reached the app: nobody listens there, or somebody else does. No attempt is spent."""

    reason: str


Answer = Returned | Reported | Raised | Unreached


def read_answer(*, status: int, headers: Mapping[str, str], content: bytes, now: datetime) -> Answer:
    """Read an HTTP answer.

    Args:
        status: its status code.
        headers: its headers, by lower-case name.
        content: its body.
        now: for a `retry-after` in seconds.
    """
    if "x-inngest-sdk" not in headers:
        return Unreached(reason=f"what listens there is not an Inngest app (it answered {status})")
    try:
        body = loads(content) if content else None
        version = int(headers.get("x-inngest-req-version") or 0) or None
        if status == 206:
            steps = tuple(_step(entry) for entry in body or ())
            if steps:
                retriable = headers.get("x-inngest-no-retry") != "true"
                return Reported(steps=steps, retriable=retriable, version=version)
        if status == 200:
            return Returned(value=body, version=version)
    except (ValueError, TypeError, KeyError, AttributeError) as wrong:
        return broken(f"the app's answer cannot be read: {wrong!r}")
    error = body if isinstance(body, dict) and "message" in body else _error(f"the app answered {status}")
    return Raised(
        error=error,
        retriable=headers.get("x-inngest-no-retry") != "true",
        retry_at=parse_retry_after(headers.get("retry-after"), now=now),
        version=version,
    )


def broken(reason: str) -> Raised:
    """A call that was made and brought nothing usable back."""
    return Raised(error=_error(reason), retriable=True, retry_at=None, version=None)


def _error(message: str) -> dict[str, Any]:
    return {"code": "unknown", "name": "CallFailed", "message": message, "stack": None}


def _step(entry: Mapping[str, Any]) -> Step:
    return Step(
        id=str(entry["id"]),
        op=str(entry["op"]),
        name=str(entry.get("name") or ""),
        label=str(entry.get("displayName") or entry.get("name") or entry["id"]),
        opts=entry.get("opts") or {},
        data=entry.get("data"),
        error=entry.get("error"),
    )
