"""What is refused when an app registers: what this engine does not do, and what the real server would not take.

Only a registration is held to this. A declaration that was stored by an engine with other rules goes on being served, or
one row that cannot be read would stop all others.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Any

from agentic.local.engine.cron import parse_cron
from agentic.local.engine.declarations import FunctionDeclaration
from agentic.local.engine.errors import RegistrationRefused
from agentic.local.engine.expressions import parse
from agentic.local.engine.flow import FlowControl

MAX_CONCURRENCY_RULES = 2
MAX_CANCELLATIONS = 5
_DEBOUNCE_SPAN = (timedelta(seconds=1), timedelta(days=7))
_RATE_SPAN = timedelta(hours=24)
_KNOWN = {
    "id",
    "name",
    "steps",
    "triggers",
    "concurrency",
    "cancel",
    "idempotency",
    "priority",
    "batchEvents",
    "debounce",
}
_KNOWN |= {"rateLimit", "throttle", "timeouts", "singleton"}


def check_function(config: Mapping[str, Any], function: FunctionDeclaration) -> None:
    """Refuse a function that would run differently here, or not at all elsewhere.

    Args:
        config: its entry in the function list.
        function: the same, read.

    Raises:
        RegistrationRefused: the first reason against it, with the function's id.
        ExpressionError: a trigger, cancellation or key expression cannot be read.
        CronError: a cron trigger cannot be read.
    """
    for what in _not_done(config):
        raise RegistrationRefused(
            f"Function {function.id} declares {what}, which the embedded engine does not do: "
            "remove it, or set INNGEST_DEV to an Inngest server."
        )
    for fault in (*_too_much(function), *_flow_faults(function.flow, function)):
        raise RegistrationRefused(f"Function {function.id} {fault}.")
    texts = [trigger.expression for trigger in function.triggers]
    texts += [rule.expression for rule in function.cancellations]
    texts += [limit.key for limit in function.concurrency]
    for text in (*texts, *function.flow.expressions, function.idempotency):
        if text is not None:
            parse(text)
    for text in function.crons:
        parse_cron(text)


def _not_done(config: Mapping[str, Any]) -> Iterator[str]:
    yield from (name for name, value in config.items() if value is not None and name not in _KNOWN)
    if any(trigger.get("jitter") for trigger in config.get("triggers") or ()):
        yield "a cron with jitter"


def _too_much(function: FunctionDeclaration) -> Iterator[str]:
    for what, rules, most in (
        ("concurrency rules", function.concurrency, MAX_CONCURRENCY_RULES),
        ("cancel events", function.cancellations, MAX_CANCELLATIONS),
    ):
        if len(rules) > most:
            yield f"has {len(rules)} {what}: declare at most {most}"
    for limit in function.concurrency:
        if limit.scope != "fn" and not limit.key:
            yield f"has a concurrency of scope {limit.scope} without a key: add one"


def _flow_faults(flow: FlowControl, function: FunctionDeclaration) -> Iterator[str]:
    if flow.rate_limit is not None and flow.rate_limit.period > _RATE_SPAN:
        yield "has a rate limit over more than 24 hours: shorten its period"
    if flow.debounce is not None and not _DEBOUNCE_SPAN[0] <= flow.debounce.period <= _DEBOUNCE_SPAN[1]:
        yield "has a debounce that is not between 1 second and 7 days: change its period"
    if flow.batch is None:
        return
    if flow.batch.max_size < 2:
        yield "has a batch of less than two events: set its size to 2 or more"
    beside = {
        "cancel": function.cancellations,
        "debounce": flow.debounce,
        "singleton": flow.singleton,
        "priority": flow.priority,
    }
    for name in (name for name, value in beside.items() if value):
        yield f"declares batchEvents and {name}, which exclude each other: choose one"
