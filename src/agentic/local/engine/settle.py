"""What an answer does to its run, in one transaction: memos, pauses, the next call, a retry, or the end."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import assert_never

from agentic.local.engine.admission import admit
from agentic.local.engine.answers import Answer, Raised, Reported, Returned, Step, Unreached
from agentic.local.engine.backoff import Backoff
from agentic.local.engine.calls import Call
from agentic.local.engine.declarations import read_function
from agentic.local.engine.errors import ExpressionError
from agentic.local.engine.event_object import make_event, memo_error
from agentic.local.engine.expressions import parse
from agentic.local.engine.moments import parse_duration, parse_moment
from agentic.local.engine.runs import end_run, go_on, memoise
from agentic.local.engine.store import Transaction

MAX_STEPS = 1000
"""Steps a run may have, as on the real server."""
_INVOKE_WAITS = timedelta(days=365)


@dataclass(frozen=True, kw_only=True, slots=True)
class RetryPolicy:
    """When a call is made again.

    Attributes:
        backoff: seconds before the next attempt, by failures so far.
        reconnect: seconds before an unreached app is tried again, by tries so far.
        unreachable_s: for how long an app may stay unreached before that counts as an attempt.
    """

    backoff: Backoff
    reconnect: Backoff
    unreachable_s: float


async def settle(transaction: Transaction, call: Call, answer: Answer, *, engine: str, retries: RetryPolicy) -> None:
    """Apply `answer` to the run of `call`; nothing where the run has ended or another engine took the call over."""
    if isinstance(answer, Unreached):
        await _unreached(transaction, call, answer, engine=engine, retries=retries)
        return
    if not call.begun:
        await transaction.run("begin_run", id=call.run_id, begun_at=call.leased_at)
    if answer.version is not None:
        await transaction.run("learn_version", id=call.run_id, version=answer.version)
    if isinstance(answer, Raised):
        await _raised(transaction, call, answer, engine=engine, retries=retries)
        return
    if isinstance(answer, Reported):
        failed = next((step for step in answer.steps if step.op == "StepError"), None)
        if failed is not None and answer.retriable and call.attempt + 1 < call.max_attempts:
            await _retry(transaction, call, None, engine=engine, retries=retries)
            return
    job = await transaction.one("finish_job", id=call.job_id, engine=engine)
    if job is None or await transaction.one("running", id=call.run_id) is None:
        return
    match answer:
        case Returned():
            await end_run(transaction, call.run_id, status="completed", result=answer.value)
        case Reported():
            await _reported(transaction, call, answer, again=job["again"])
        case _:
            assert_never(answer)


async def _reported(transaction: Transaction, call: Call, answer: Reported, *, again: bool) -> None:
    news = False
    for step in answer.steps:
        if await transaction.one("is_known_step", run_id=call.run_id, step=step.id) is not None:
            continue  # a racing group reports its open steps again on every call
        news = True
        try:
            await _take_step(transaction, call, step)
        except (ValueError, ExpressionError) as wrong:
            error = {"name": "StepRefused", "message": f"step {step.label!r}: {wrong}", "stack": None}
            await end_run(transaction, call.run_id, status="failed", result=error, retriable=False)
            return
    state = await transaction.one("outstanding", run_id=call.run_id)
    if state is not None and state["done"] > MAX_STEPS:
        error = {"name": "TooManySteps", "message": f"a run has at most {MAX_STEPS} steps", "stack": None}
        await end_run(transaction, call.run_id, status="failed", result=error, retriable=False)
    elif state is not None and state["open"] == 0 and not news and not again:
        # Calling again would bring the same answer for ever.
        error = {"name": "NothingNew", "message": "the app reported only steps that are finished", "stack": None}
        await end_run(transaction, call.run_id, status="failed", result=error, retriable=False)
    else:
        ended = {"StepRun", "StepError", "StepFailed"}
        await go_on(transaction, call.run_id, race=again or any(s.races and s.op in ended for s in answer.steps))


async def _take_step(transaction: Transaction, call: Call, step: Step) -> None:
    run_id, now = call.run_id, transaction.now
    match step.op:
        case "StepRun":
            await memoise(transaction, run_id, step=step.id, name=step.label, memo={"data": step.data})
        case "StepError" | "StepFailed":
            await memoise(transaction, run_id, step=step.id, name=step.label, memo={"error": memo_error(step.error)})
        case "StepPlanned":
            await transaction.run("plan_job", run_id=run_id, step=step.id)
        case "Sleep":
            await _pause(transaction, run_id, step, kind="sleep", due_at=parse_moment(step.name))
        case "WaitForEvent":
            if (expression := step.opts.get("if")) is not None:
                parse(expression)
            due_at = now + parse_duration(str(step.opts.get("timeout")))
            await _pause(transaction, run_id, step, kind="event", due_at=due_at)
        case "InvokeFunction":
            await _invoke(transaction, run_id, step)
        case _:
            raise ValueError(f"the embedded engine does not do {step.op}; set INNGEST_DEV to an Inngest server")


async def _pause(transaction: Transaction, run_id: str, step: Step, *, kind: str, due_at: datetime) -> None:
    waits = kind == "event"
    await transaction.run(
        "insert_pause",
        run_id=run_id,
        step=step.id,
        name=step.label,
        kind=kind,
        due_at=due_at,
        event_name=step.name if waits else None,
        expression=step.opts.get("if") if waits else None,
        race=step.races,
    )


async def _invoke(transaction: Transaction, run_id: str, step: Step) -> None:
    function_id, payload = str(step.opts["function_id"]), step.opts.get("payload") or {}
    row = await transaction.one("function_config", id=function_id)
    if row is None:
        error = {"name": "FunctionNotFound", "message": f"no app has registered function {function_id}", "stack": None}
        await memoise(transaction, run_id, step=step.id, name=step.label, memo={"error": error})
        return
    function = read_function(row["config"])
    if function.flow.debounce is not None or function.flow.batch is not None:
        # The result of one run would belong to many invocations.
        raise ValueError(f"the embedded engine does not invoke {function_id}, which debounces or batches its events")
    timeout = step.opts.get("timeout")
    due_at = transaction.now + (parse_duration(timeout) if timeout else _INVOKE_WAITS)
    await _pause(transaction, run_id, step, kind="invoke", due_at=due_at)
    event = make_event(transaction, name="inngest/function.invoked", data=payload.get("data") or {}, v=payload.get("v"))
    if not await admit(transaction, function, event, parent=(run_id, step.id)):
        # Without a run to wait for, the wait would last until its time is over, which may be a year.
        await transaction.run("take_pause", run_id=run_id, step=step.id)
        message = f"{function_id} was not started: its rate limit is reached, or a run of its singleton is on"
        error = {"name": "InvocationDropped", "message": message, "stack": None}
        await memoise(transaction, run_id, step=step.id, name=step.label, memo={"error": error})


async def _raised(transaction: Transaction, call: Call, answer: Raised, *, engine: str, retries: RetryPolicy) -> None:
    if answer.retriable and call.attempt + 1 < call.max_attempts:
        await _retry(transaction, call, answer.retry_at, engine=engine, retries=retries)
    elif await transaction.one("finish_job", id=call.job_id, engine=engine) is not None:
        await end_run(transaction, call.run_id, status="failed", result=answer.error, retriable=answer.retriable)


async def _retry(
    transaction: Transaction, call: Call, retry_at: datetime | None, *, engine: str, retries: RetryPolicy
) -> None:
    due_at = retry_at or transaction.now + timedelta(seconds=retries.backoff(call.attempt + 1))
    await transaction.run("retry_job", id=call.job_id, engine=engine, due_at=due_at)


async def _unreached(
    transaction: Transaction, call: Call, answer: Unreached, *, engine: str, retries: RetryPolicy
) -> None:
    since = call.unreachable_since or transaction.now
    if transaction.now - since >= timedelta(seconds=retries.unreachable_s):
        message = f"the app at {call.url} was not reached for {retries.unreachable_s:.0f} s: {answer.reason}"
        error = {"code": "unknown", "name": "AppUnreachable", "message": message, "stack": None}
        spent = Raised(error=error, retriable=True, retry_at=None, version=None)
        await _raised(transaction, call, spent, engine=engine, retries=retries)
        return
    due_at = transaction.now + timedelta(seconds=retries.reconnect(call.unreachable_count + 1))
    await transaction.run("reconnect_job", id=call.job_id, engine=engine, due_at=due_at)
