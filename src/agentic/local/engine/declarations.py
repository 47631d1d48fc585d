"""What an app declares: its function list, read into values. What of it is refused is `refusals`."""

from __future__ import annotations

import hashlib
import ipaddress
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

from agentic.local.engine.errors import EngineError, NotLoopback, RegistrationRefused
from agentic.local.engine.flow import FlowControl, read_flow
from agentic.local.engine.moments import parse_duration

DEFAULT_RETRIES = 4
_SCOPES = ("fn", "env", "account")


@dataclass(frozen=True, kw_only=True, slots=True)
class EventTrigger:
    """Start a run when an event of this name comes in; a trailing `*` stands for any ending."""

    event: str
    expression: str | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Concurrency:
    """At most `limit` calls in flight among runs that share the scope and the value of `key`."""

    limit: int
    key: str | None
    scope: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Cancellation:
    """Cancel running runs when this event comes in and `expression` holds, up to `timeout` after their start."""

    event: str
    expression: str | None
    timeout: timedelta | None


@dataclass(frozen=True, kw_only=True, slots=True)
class FunctionDeclaration:
    """One function of an app, as much of it as the engine acts on."""

    id: str
    max_attempts: int
    triggers: tuple[EventTrigger, ...]
    crons: tuple[str, ...]
    concurrency: tuple[Concurrency, ...]
    cancellations: tuple[Cancellation, ...]
    idempotency: str | None
    flow: FlowControl


@dataclass(frozen=True, kw_only=True, slots=True)
class AppDeclaration:
    """What one registration says: the app, where it is called, and its functions with their raw declarations."""

    name: str
    url: str
    checksum: str
    functions: tuple[FunctionDeclaration, ...]
    configs: Mapping[str, Mapping[str, Any]]


def read_app(body: Any) -> AppDeclaration:
    """Read the body that the SDK posts to `/fn/register`.

    Raises:
        RegistrationRefused: it is not one.
        NotLoopback: the app's address is not on this machine.
    """
    try:
        name, url, raw = str(body["appname"]), str(body["url"]), list(body["functions"])
        functions = tuple(read_function(config) for config in raw)
    except EngineError:
        raise
    except (KeyError, TypeError, ValueError, AttributeError) as wrong:
        raise RegistrationRefused(
            f"The function list cannot be read ({wrong!r}): register with an Inngest SDK of the protocol of 0.5."
        ) from wrong
    require_loopback("The app's address", url)
    # The address is left out: a worker that comes back on another port has not changed its functions.
    bare = [{**config, "steps": None} for config in raw]
    checksum = hashlib.sha256(json.dumps([name, bare], sort_keys=True).encode()).hexdigest()
    return AppDeclaration(
        name=name,
        url=url,
        checksum=checksum,
        functions=functions,
        configs={config["id"]: config for config in raw},
    )


def read_function(config: Mapping[str, Any]) -> FunctionDeclaration:
    """Read one entry of the function list; raises as `read_app` does, or what reading a malformed entry raises."""
    function_id = str(config["id"])
    step = config["steps"]["step"]
    if step["runtime"]["type"] != "http":
        raise RegistrationRefused(f"Function {function_id} is not served over HTTP: serve its app at /api/inngest.")
    triggers: Sequence[Mapping[str, Any]] = [dict(trigger) for trigger in config.get("triggers") or ()]
    try:
        flow = read_flow(config)
    except ValueError as wrong:
        raise RegistrationRefused(f"Function {function_id} {wrong}.") from wrong
    return FunctionDeclaration(
        id=function_id,
        max_attempts=int((step.get("retries") or {}).get("attempts", DEFAULT_RETRIES)) + 1,
        triggers=tuple(
            EventTrigger(event=str(trigger["event"]), expression=trigger.get("expression"))
            for trigger in triggers
            if "event" in trigger
        ),
        crons=tuple(str(trigger["cron"]) for trigger in triggers if "cron" in trigger),
        concurrency=tuple(_concurrency(function_id, entry) for entry in config.get("concurrency") or ()),
        cancellations=tuple(_cancellation(entry) for entry in config.get("cancel") or ()),
        idempotency=config.get("idempotency"),
        flow=flow,
    )


def require_loopback(what: str, url: str) -> None:
    """Refuse an address outside this machine.

    Raises:
        NotLoopback: its host is neither `localhost` nor a loopback address.
    """
    host = urlsplit(url).hostname or ""
    try:
        loopback = host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        loopback = False
    if not loopback:
        raise NotLoopback(what=what, address=url)


def _concurrency(function_id: str, entry: Mapping[str, Any]) -> Concurrency:
    scope = str(entry.get("scope") or "fn")
    if scope not in _SCOPES:
        raise RegistrationRefused(f"Function {function_id} has a concurrency scope {scope!r}: use one of {_SCOPES}.")
    return Concurrency(limit=int(entry["limit"]), key=entry.get("key"), scope=scope)


def _cancellation(entry: Mapping[str, Any]) -> Cancellation:
    timeout = entry.get("timeout")
    return Cancellation(
        event=str(entry["event"]), expression=entry.get("if"), timeout=parse_duration(timeout) if timeout else None
    )
