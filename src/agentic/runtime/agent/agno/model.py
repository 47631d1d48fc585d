"""The mixin over a model: the one place every request and every proposed call passes.

Before a request it hands the new messages to the run, after one it reports the attempt, and of the answer it decides which calls
the loop may run. The entry points it overrides are not documented by agno; the contract tests hold them.
"""

from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, cast

from agno.exceptions import ModelProviderError
from agno.models.base import Model
from agno.models.message import Message
from agno.models.response import ModelResponse
from agno.tools.function import Function, FunctionCall

from agentic.contract.trust import Trust
from agentic.runtime.agent.aborts import Leave, SegmentStop
from agentic.runtime.agent.agno import call_ids, call_shape, messages
from agentic.runtime.agent.agno.adapter import paused_function
from agentic.runtime.agent.agno.answer_only import answer_only
from agentic.runtime.agent.agno.attempts import Attempt
from agentic.runtime.agent.agno.reads import InlineReads, guarded
from agentic.runtime.agent.agno.reported import ProviderSaid, error_in, usage_so_far
from agentic.runtime.agent.agno.response_items import ResponseItems
from agentic.runtime.agent.agno.router import Route, RoutedCall, route
from agentic.runtime.agent.agno.sendable import sendable
from agentic.runtime.agent.agno.stop_reasons import STOP_KEY, stop_reason
from agentic.runtime.agent.ports import RunMessage, TurnHooks
from agentic.services.tools.models import FrozenTool


@dataclass(kw_only=True, slots=True)
class TurnState:
    """What one turn knows while the loop runs."""

    hooks: TurnHooks
    stop: SegmentStop
    reads: InlineReads
    tools: Sequence[FrozenTool]
    trust: dict[str, Trust]
    """Label of every message of the log, by message id."""
    leave: Leave
    asking: bool = False
    """Whether a request is under way: its answer may be left at any moment, since nothing of it is stored yet."""
    failure: Exception | None = None
    """What the last attempt failed with; agno keeps only its text."""
    reason: str | None = None
    """Why the provider stopped, as far as the answer under way has said."""
    said_error: ProviderSaid | None = None
    """An error inside the answer under way, which agno takes for its end."""
    attempt: Attempt | None = None
    items: ResponseItems = field(default_factory=ResponseItems)
    """The answer under way, where it comes in items."""
    routed: dict[str, list[RoutedCall]] = field(default_factory=dict)
    """The router's decision, by assistant message id."""

    def take_new(self, history: Sequence[Message]) -> list[RunMessage]:
        """The messages no hook has seen yet, labelled; they count as seen from here on."""
        fresh = []
        for message in history:
            if message.role == "system" or message.id in self.trust:
                continue
            self.trust[message.id] = self._label(message)
            fresh.append(messages.dump(message, self.trust[message.id]))
        return fresh

    def _label(self, message: Message) -> Trust:
        if message.role == "tool":
            return self.reads.trust.get(message.tool_call_id or "", Trust.EXTERNAL)
        # The model's words and what the loop adds by itself say nothing that the context did not hold (ADR 0012).
        return min(
            (*self.trust.values(), *self.reads.trust.values()), key=lambda label: label.rank, default=Trust.EXTERNAL
        )


class GovernedModel(Model):
    """Mixed over the class of the user's model for one turn."""

    turn: TurnState

    async def ainvoke(self, *args: Any, **kwargs: Any) -> ModelResponse:
        """One request, whole answer."""
        kwargs = await self._checkpoint(kwargs)
        attempt = self._begin()
        try:
            response: ModelResponse = await cast(Any, super()).ainvoke(*args, **kwargs)
        except BaseException as exc:
            self._failed(attempt, exc)
            raise
        if response.response_usage is not None:
            attempt.usage(response.response_usage)
        self._report(attempt)
        self._tell(response)
        return response

    async def ainvoke_stream(self, *args: Any, **kwargs: Any) -> AsyncIterator[ModelResponse]:
        """One request, streamed answer."""
        kwargs = await self._checkpoint(kwargs)
        attempt = self._begin()
        said = False
        try:
            async for delta in cast(Any, super()).ainvoke_stream(*args, **kwargs):
                if delta.response_usage is not None:
                    attempt.usage(delta.response_usage)
                said = said or bool(delta.content or delta.tool_calls or delta.reasoning_content)
                self._tell(delta)
                yield delta
            self._require(said=said)
        except BaseException as exc:
            self._failed(attempt, exc)
            raise
        self._report(attempt)

    async def aprocess_response_stream(self, *args: Any, **kwargs: Any) -> AsyncIterator[ModelResponse]:
        """As agno's, then settle the answer: it is complete here and none of its tools has run."""
        async for delta in super().aprocess_response_stream(*args, **kwargs):
            yield delta
        await self._settle(kwargs["assistant_message"], kwargs["messages"])

    async def _aprocess_model_response(self, *args: Any, **kwargs: Any) -> None:
        """The same place when the answer is not streamed."""
        await super()._aprocess_model_response(*args, **kwargs)
        await self._settle(kwargs["assistant_message"], kwargs["messages"])

    def get_function_calls_to_run(
        self,
        assistant_message: Message,
        messages: list[Message],
        functions: dict[str, Function] | None = None,
    ) -> list[FunctionCall]:
        """The loop's view of the calls: every one parses, and holds the call id alone.

        agno's own version answers unknown and malformed calls by itself, asks again without bound, and turns the string "None"
        into null; the raw text stays in the assistant message (N2).
        """
        calls = []
        for routed in self.turn.routed[assistant_message.id]:
            call = routed.call
            if routed.route is Route.INLINE:
                function = (functions or {})[call.model_name]
                self.turn.reads.plan(call)
            else:
                function = paused_function(call.model_name or "unknown")
            calls.append(
                FunctionCall(function=function, arguments={"call_id": call.model_call_id}, call_id=call.model_call_id)
            )
        return calls

    def _parse_provider_response(self, response: Any, *args: Any, **kwargs: Any) -> ModelResponse:
        self._note(response)
        parent = cast(Any, super())
        parsed: ModelResponse = parent._parse_provider_response(response, *args, **kwargs)  # noqa: SLF001 - its override
        return parsed

    def _parse_provider_response_delta(self, response: Any, *args: Any, **kwargs: Any) -> Any:
        self._note(response)
        parse = cast(Any, super())._parse_provider_response_delta  # noqa: SLF001 - its override
        if len(args) == 2 and not kwargs:  # the responses classes: the message and the call in hand
            return self.turn.items.parse(parse, response, *args)
        return parse(response, *args, **kwargs)

    async def _checkpoint(self, request: dict[str, Any]) -> dict[str, Any]:
        """Hand over what is new, and return the request as it goes out."""
        self.turn.stop.check()
        new = self.turn.take_new(request["messages"])
        must_answer = await guarded(self.turn.stop, "checkpoint_failed", self.turn.hooks.before_request(new))
        left = self.turn.leave.abort
        if left is not None:
            raise self.turn.stop.record(left.kind, left.code)
        request = {**request, "messages": [sendable(message) for message in request["messages"]]}
        return answer_only(self, request) if must_answer else request

    def _tell(self, said: ModelResponse) -> None:
        if isinstance(said.content, str) and said.content:
            self.turn.hooks.said(said.content)

    def _begin(self) -> Attempt:
        self.turn.failure = self.turn.reason = self.turn.said_error = None
        self.turn.attempt = Attempt(self)
        self.turn.items = ResponseItems()
        self.turn.asking = True
        return self.turn.attempt

    def _failed(self, attempt: Attempt, error: BaseException) -> None:
        if isinstance(error, Exception):
            self.turn.failure = error
        self._report(attempt, error)

    def _report(self, attempt: Attempt, error: BaseException | None = None) -> None:
        self.turn.asking = False
        try:
            self.turn.hooks.attempted(attempt.end(error))
        except Exception as exc:
            raise self.turn.stop.record("failed", "attempt_not_recorded", exc) from exc

    def _require(self, *, said: bool) -> None:
        """A stream that held an error, or neither a word nor a reason, is no answer, whatever its status was.

        Checked at its end: a stream that is left in the middle keeps its connection.
        """
        if self.turn.said_error is not None:
            raise self.turn.said_error
        if not said and self.turn.reason is None:
            raise ModelProviderError("the stream ended before the model said anything", model_name=self.name)

    def _note(self, event: Any) -> None:
        self.turn.reason = stop_reason(event) or self.turn.reason
        usage = usage_so_far(event)
        if usage is not None and self.turn.attempt is not None and hasattr(self, "_get_metrics"):
            # agno reads this event for itself where it wants to; one it cannot read here must not cost the answer
            with suppress(AttributeError, TypeError, ValueError):
                self.turn.attempt.usage(self._get_metrics(usage))
        self.turn.said_error = error_in(event, model_name=self.name) or self.turn.said_error

    async def _settle(self, answer: Message, history: list[Message]) -> None:
        """Fix what is stored of an answer and decide its calls; store it first when one of them runs here (J8)."""
        answer.provider_data = {
            **(answer.provider_data or {}),
            **({STOP_KEY: self.turn.reason} if self.turn.reason else {}),
        }
        answer.tool_calls = self.turn.items.in_order(answer.tool_calls or []) or None
        call_shape.complete(answer)
        call_ids.make_unique(answer, history)
        calls = messages.proposed(answer, self.turn.tools)
        routed = route(calls, self.turn.tools)
        self.turn.routed[answer.id] = routed
        if any(each.route is Route.INLINE for each in routed):
            for stored in self.turn.take_new([answer]):
                await guarded(self.turn.stop, "answer_not_stored", self.turn.hooks.answered(stored, calls))
