"""What a handler or a probe did, as a value, and what is said of an end that is no answer."""

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, assert_never

from pydantic import BaseModel

from agentic.contract.errors import GiveUp, ProgramFault
from agentic.contract.faults import where
from agentic.contract.results import ErrorCode, Said, ToolResult
from agentic.services.tools.attempt import Attempt, Prepared
from agentic.services.tools.cancellation import asked_to_stop
from agentic.services.tools.context import CallContext, answer_reserve_s
from agentic.services.tools.declarations import Tool
from agentic.services.tools.endings import HandlerEnd
from agentic.services.tools.handlers.errors import DefiniteRefusal, OutcomeUnknown
from agentic.services.tools.outcomes import refusal
from agentic.services.tools.ports import Probe
from agentic.services.tools.result_boundary import said_text

_log = logging.getLogger(__name__)
_MAX_QUOTED: Final = 500


@dataclass(frozen=True, kw_only=True, slots=True)
class HandlerAnswer:
    """What a handler did, as a value."""

    end: HandlerEnd
    value: Any = None
    error: Exception | None = None


async def handled(tool: Tool, model: BaseModel, ctx: CallContext) -> HandlerAnswer:
    """Run a tool's handler under its deadline.

    Raises:
        GiveUp: the call is somebody else's by now.
        asyncio.CancelledError: this task was asked to stop.
    """
    if ctx.remaining_s == 0:
        return HandlerAnswer(end=HandlerEnd.NOT_STARTED)
    limit = asyncio.timeout(ctx.remaining_s + answer_reserve_s(ctx.timeout_s))
    try:
        async with limit:
            return HandlerAnswer(end=HandlerEnd.RETURNED, value=await tool.handler.execute(ctx, model))
    except DefiniteRefusal as error:
        return HandlerAnswer(
            end=HandlerEnd.RETRYABLE_REFUSAL if error.leaves_no_claim else HandlerEnd.DEFINITE_REFUSAL, error=error
        )
    except GiveUp:
        raise
    except OutcomeUnknown as error:
        _log.warning("%s: nobody knows whether it happened, %s", ctx.tool, where(error))
        return HandlerAnswer(end=HandlerEnd.RAISED, error=error)
    except TimeoutError as error:
        return HandlerAnswer(end=HandlerEnd.TIMED_OUT if limit.expired() else HandlerEnd.RAISED, error=error)
    except asyncio.CancelledError as error:
        if asked_to_stop():
            raise
        return _escaped(error, f"{ctx.tool} let a cancellation of its own escape")
    except SystemExit as error:  # else one handler would end this process, and with it every other call in hand
        return _escaped(error, f"{ctx.tool} tried to end the process")
    except Exception as error:
        if type(error) in tool.refusals:
            return HandlerAnswer(end=HandlerEnd.BUSINESS_REFUSAL, error=error)
        _log.warning("%s raised %s", ctx.tool, where(error))
        return HandlerAnswer(end=HandlerEnd.RAISED, error=error)


def _escaped(error: BaseException, what: str) -> HandlerAnswer:
    _log.warning(what)
    raised = RuntimeError(what)
    raised.__cause__ = error
    return HandlerAnswer(end=HandlerEnd.RAISED, error=raised)


async def ask(probe: Probe, model: BaseModel, ctx: CallContext) -> HandlerAnswer | None:
    """The probe's answer; ``None`` when it cannot tell."""
    try:
        async with asyncio.timeout(ctx.remaining_s):
            return HandlerAnswer(end=HandlerEnd.RETURNED, value=await probe(ctx, model))
    except (Exception, asyncio.CancelledError) as error:
        if isinstance(error, asyncio.CancelledError) and asked_to_stop():
            raise
        # a probe that fails tells nothing; the operator is asked instead
        _log.warning("the probe of %s could not tell whether the call happened (%s)", ctx.tool, type(error).__name__)
        return None


def refused(call: Prepared, tool: Tool | None, answer: HandlerAnswer) -> ToolResult:
    """The refusal a handler's end other than a return answers with."""
    match answer.end:
        case HandlerEnd.BUSINESS_REFUSAL:
            code = tool.refusals[type(answer.error)] if tool and answer.error else ErrorCode.INTERNAL_ERROR
            return refusal(code, said=_said("domain", _words(answer.error), call.at))
        case HandlerEnd.DEFINITE_REFUSAL | HandlerEnd.RETRYABLE_REFUSAL:
            if not isinstance(answer.error, DefiniteRefusal):
                return refusal(ErrorCode.RETRYABLE_UPSTREAM)
            words = answer.error.external_text
            return refusal(answer.error.code, said=_said("remote", words, call.at) if words else None)
        case HandlerEnd.TIMED_OUT | HandlerEnd.NOT_STARTED:
            return refusal(ErrorCode.TIMEOUT)
        case HandlerEnd.RAISED:
            return refusal(ErrorCode.INTERNAL_ERROR)
        case HandlerEnd.RETURNED:
            raise ProgramFault(f"{call.spec.name} returned; that is no refusal")
        case _ as never:
            assert_never(never)


def reason_of(cause: HandlerAnswer | None, secrets: Sequence[str]) -> str:
    """Why nobody knows, for the operator; ``None`` stands for a worker that died.

    Args:
        secrets: of the call, which are masked.
    """
    if cause is None:
        return "the worker died after the effect may have left"
    if cause.end is HandlerEnd.NOT_STARTED:
        return "an earlier attempt ended unknown, and no time was left for another"
    if cause.end is HandlerEnd.TIMED_OUT:
        return "no answer before the deadline"
    if isinstance(cause.error, OutcomeUnknown):
        words = cause.error.external_text
        quoted = f"; what the other side wrote of it: {said_text(words, secrets)[:_MAX_QUOTED]}" if words else ""
        return said_text(str(cause.error), secrets) + quoted
    return f"the handler failed after the effect may have left ({type(cause.error).__name__})"


def _said(by: Literal["remote", "domain"], words: str, at: Attempt) -> Said:
    return Said(by=by, text=said_text(words, at.secrets))


def _words(error: Exception | None) -> str:
    try:
        return str(error)
    except Exception:  # a refusal is an answer even when its text cannot be had
        return type(error).__name__
