"""A model that plays a script, for tests and for the rehearsal. It goes through the same mixin as every other model.

Its position is the number of answers in the history it is asked with, so a script goes on in another process where it stopped.
"""

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast
from uuid import uuid4

import httpx
from agno.exceptions import ModelProviderError
from agno.metrics import MessageMetrics
from agno.models.base import Model
from agno.models.message import Message
from agno.models.response import ModelResponse

from agentic.runtime.agent.script import Answered, Call, Calls, Fail, Say, SeenCall, SeenMessage, Turn, Usage
from agentic.services.tools.models import model_tool_name


@dataclass(frozen=True, kw_only=True, slots=True)
class _Choice:
    """The scripted provider's event, in the shape the stop reason is read from."""

    finish_reason: str | None
    text: str
    tool_calls: list[dict[str, Any]]


@dataclass(frozen=True, kw_only=True, slots=True)
class _Event:
    choices: list[_Choice]


@dataclass
class ScriptedModel(Model):
    """Plays a script.

    Attributes:
        script: the turns, in order; a request past its end fails, saying so.
        reword: renew the call ids, and word the rewordable arguments anew, whenever a turn is asked for again.
        usage: what every request reports.
        failures: requests of this object that fail, by their number from 0.
        on_request: awaited before each request is answered, with its number; a place for a test's barrier.
    """

    id: str = "scripted"
    name: str | None = "Scripted"
    provider: str | None = "Scripted"
    script: Sequence[Turn] = ()
    reword: bool = False
    usage: Usage = field(default_factory=Usage)
    failures: Mapping[int, Fail] = field(default_factory=dict)
    on_request: Callable[[int], Awaitable[None]] | None = None
    asked: list[list[SeenMessage]] = field(default_factory=list)
    """The history of every request so far, failed ones included; shared by the copies a turn makes."""

    async def ainvoke(self, messages: list[Message], *_args: Any, **_kwargs: Any) -> ModelResponse:
        """The whole answer at once."""
        event = await self._answer(messages)
        return self._parse_provider_response(event)

    async def ainvoke_stream(
        self, messages: list[Message], *_args: Any, **_kwargs: Any
    ) -> AsyncIterator[ModelResponse]:
        """The answer in two pieces: its words and calls, then its end."""
        event = await self._answer(messages)
        whole = event.choices[0]
        yield self._parse_provider_response_delta(
            _Event(choices=[_Choice(finish_reason=None, text=whole.text, tool_calls=whole.tool_calls)])
        )
        if whole.finish_reason is not None:
            yield self._parse_provider_response_delta(
                _Event(choices=[_Choice(finish_reason=whole.finish_reason, text="", tool_calls=[])])
            )
        yield ModelResponse(response_usage=self._reported())

    def invoke(self, *_args: Any, **_kwargs: Any) -> ModelResponse:
        """Refused: a run is asynchronous."""
        raise TypeError("a scripted model is asynchronous only: run it with arun")

    def invoke_stream(self, *_args: Any, **_kwargs: Any) -> Iterator[ModelResponse]:
        """Refused: a run is asynchronous."""
        raise TypeError("a scripted model is asynchronous only: run it with arun")

    def _parse_provider_response(self, response: Any, **_kwargs: Any) -> ModelResponse:
        parsed = self._parse_provider_response_delta(response)
        parsed.response_usage = self._reported()
        return parsed

    def _parse_provider_response_delta(self, response: Any) -> ModelResponse:
        choice = response.choices[0]
        return ModelResponse(role="assistant", content=choice.text or None, tool_calls=choice.tool_calls)

    async def _answer(self, history: Sequence[Message]) -> _Event:
        number = len(self.asked)
        seen = [_seen(message) for message in history]
        self.asked.append(seen)
        if self.on_request is not None:
            await self.on_request(number)
        if number in self.failures:
            raise _failure(self.failures[number])
        position = sum(1 for message in seen if message.role == "assistant")
        if position >= len(self.script):
            raise ModelProviderError(
                f"the script has {len(self.script)} turns and was asked for turn {position + 1}", 422
            )
        turn = self.script[position]
        return self._event(turn if isinstance(turn, Say | Calls) else turn(seen), position)

    def _event(self, answer: Answered, position: int) -> _Event:
        if isinstance(answer, Say):
            return _Event(choices=[_Choice(finish_reason=answer.stop, text=answer.text, tool_calls=[])])
        calls = [self._call(call, f"call_{position}_{i}") for i, call in enumerate(answer.calls)]
        return _Event(choices=[_Choice(finish_reason=answer.stop, text=answer.text, tool_calls=calls)])

    def _call(self, call: Call, derived_id: str) -> dict[str, Any]:
        call_id = call.id or (f"call_{uuid4().hex[:24]}" if self.reword else derived_id)
        text = call.arguments if isinstance(call.arguments, str) else json.dumps(self._worded(call), ensure_ascii=False)
        return {"id": call_id, "type": "function", "function": {"name": model_tool_name(call.name), "arguments": text}}

    def _worded(self, call: Call) -> dict[str, Any]:
        arguments = dict(cast(Mapping[str, Any], call.arguments))
        if self.reword:
            for name in call.reword:
                arguments[name] = f"{arguments[name]} [{uuid4().hex[:8]}]"
        return arguments

    def _reported(self) -> MessageMetrics:
        usage = self.usage
        return MessageMetrics(
            input_tokens=usage.input_tokens,
            output_tokens=usage.output_tokens,
            total_tokens=usage.input_tokens + usage.output_tokens,
            cache_read_tokens=usage.cached_tokens,
            reasoning_tokens=usage.reasoning_tokens,
            cost=None if usage.cost is None else float(usage.cost),
        )


def _seen(message: Message) -> SeenMessage:
    calls = tuple(
        SeenCall(id=call["id"], name=call["function"]["name"], arguments_text=call["function"]["arguments"])
        for call in message.tool_calls or []
    )
    return SeenMessage(
        role=cast(Any, message.role),
        text=message.get_content_string(),
        calls=calls,
        call_id=message.tool_call_id,
        tool_name=message.tool_name,
    )


def _failure(fail: Fail) -> ModelProviderError:
    headers = {} if fail.retry_after_s is None else {"retry-after": str(fail.retry_after_s)}
    request = httpx.Request("POST", "http://scripted.test/")
    response = httpx.Response(fail.status, headers=headers, request=request)
    error = ModelProviderError(fail.message, fail.status)
    error.__cause__ = httpx.HTTPStatusError(fail.message, request=request, response=response)
    return error
