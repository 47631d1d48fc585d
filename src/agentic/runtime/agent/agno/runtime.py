"""agno as a run's agent loop: one ``arun`` over the stored messages for each turn, nothing kept in between (ADR 0003).

Every setting by which agno would store, retry, template or add something of its own is off.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from agno.agent import Agent
from agno.models.base import Model
from agno.models.message import Message
from agno.run.agent import RunErrorEvent, RunOutput
from agno.run.base import RunStatus
from agno.tools.function import Function

from agentic.contract.trust import Trust
from agentic.runtime.agent.aborts import SegmentStop
from agentic.runtime.agent.agno import messages as log
from agentic.runtime.agent.agno.adapter import functions
from agentic.runtime.agent.agno.failures import failed
from agentic.runtime.agent.agno.governed_copy import governed
from agentic.runtime.agent.agno.model import TurnState
from agentic.runtime.agent.agno.pool import ModelPool
from agentic.runtime.agent.agno.providers import Models
from agentic.runtime.agent.agno.reads import InlineReads
from agentic.runtime.agent.agno.stop_reasons import STOP_KEY, is_whole
from agentic.runtime.agent.agno.stream import WIND_DOWN_S, exhaust
from agentic.runtime.agent.ports import (
    Answer,
    ProposedCall,
    RunMessage,
    Turn,
    TurnCompleted,
    TurnEnd,
    TurnFailed,
    TurnHooks,
    TurnPaused,
)
from agentic.services.tools.models import FrozenTool


@dataclass(frozen=True, kw_only=True, slots=True)
class _Ended:
    """What the loop left: its output, or the text of its error."""

    output: RunOutput | None
    error: str | None


class AgnoLoop:
    """The agent loop of agno, as the port ``AgentLoop`` wants it.

    Args:
        models: factories of the models registered with the application, by name, each called once in an event loop; other
            names are agno model strings, ``provider:model``.
        stream: ask the providers for streams; ``False`` for those that have none.
        wind_down_s: how long, in seconds, a cancelled turn waits for the loop to reach its next hook.
    """

    def __init__(self, models: Models | None = None, *, stream: bool = True, wind_down_s: float = WIND_DOWN_S) -> None:
        self._pool = ModelPool(models or {})
        self._stream = stream
        self._wind_down_s = wind_down_s

    @property
    def format(self) -> str:
        """Name and version of the message format."""
        return log.FORMAT

    def check_model(self, name: str) -> None:
        """Say now, not in the middle of a run, that a model cannot be used.

        Raises:
            ProgramFault: what is missing, and what to do.
        """
        self._pool.check(name)

    async def aclose(self) -> None:
        """Close the connections to providers that turns in this event loop opened."""
        await self._pool.aclose()

    def user_message(self, text: str) -> RunMessage:
        """The message that starts a run; nothing in it is templated."""
        return log.user(text)

    def quoted(self, role: Literal["user", "assistant"], text: str, trust: Trust) -> RunMessage:
        """A new message of these words, under its own label."""
        return log.quoted(role, text, trust)

    def tool_message(self, call: ProposedCall, answer: Answer) -> RunMessage:
        """The answer of one drained call; the same call gives the same message id."""
        return log.answer(call, answer)

    def open_calls(self, messages: Sequence[RunMessage], tools: Sequence[FrozenTool]) -> list[ProposedCall]:
        """The calls of the last assistant message that no tool message answers, in the model's order."""
        return log.open_calls([log.load(stored) for stored in messages], tools)

    def text_of(self, message: RunMessage) -> str:
        """The readable text of a message."""
        return log.load(message).get_content_string()

    async def turn(self, turn: Turn, hooks: TurnHooks) -> TurnEnd:
        """One turn of the model and of the reads it makes.

        Raises:
            SegmentAbort: the stop a hook raised or an unexpected exception of one, with nothing else kept.
            ProgramFault: the model cannot be made, or a stored call has no answer.
            RegistryError: the tools cannot be shown to a provider.
            RunEnded: ``history_unreadable``.
        """
        pooled = self._pool.get(turn.definition.model)
        history = log.render([log.load(stored) for stored in turn.messages])
        stop = SegmentStop()
        reads = InlineReads(hooks, stop)
        state = TurnState(
            hooks=hooks,
            stop=stop,
            reads=reads,
            tools=turn.tools,
            trust={stored.id: stored.trust for stored in turn.messages},
            leave=turn.leave,
        )
        shown = functions(turn.tools, reads.run)
        copy = governed(pooled.model, state, pooled.clients)
        agent = _agent(copy, turn, shown)
        try:
            ended = await exhaust(
                self._run(agent, history), stop, self._wind_down_s, leave=turn.leave, asking=lambda: state.asking
            )
        finally:
            pooled.keep(copy)
        stop.check()
        if ended.output is None or ended.output.status is RunStatus.error:
            if state.failure is not None:
                return failed(state.failure, copy)
            return TurnFailed(code="model_error", message=ended.error or "the loop ended without an answer")
        return _end(ended.output, turn, state)

    async def _run(self, agent: Agent, history: list[Message]) -> _Ended:
        """One ``arun``, to its end."""
        if not self._stream:
            output = await agent.arun(history, stream=False)
            return _Ended(
                output=output, error=output.get_content_as_string() if output.status is RunStatus.error else None
            )
        last: RunOutput | None = None
        error: str | None = None
        async for event in agent.arun(history, stream=True, stream_events=True, yield_run_output=True):
            if isinstance(event, RunOutput):
                last = event
            elif isinstance(event, RunErrorEvent):
                error = event.content
        return _Ended(output=last, error=error)


def _agent(model: Model, turn: Turn, shown: list[Function]) -> Agent:
    return Agent(
        model=model,
        name=turn.definition.name,
        system_message=turn.definition.instructions,
        resolve_in_context=False,
        tools=list(shown),
        db=None,
        add_history_to_context=False,
        retries=0,
        telemetry=False,
        store_media=True,
        store_tool_messages=True,
    )


def _end(output: RunOutput, turn: Turn, state: TurnState) -> TurnEnd:
    """What the turn came to, read from its messages; agno's own status does not know a cut answer from a whole one."""
    history = [message for message in output.messages or [] if message.role != "system"]
    answers = [message for message in history if message.role == "assistant"]
    if not answers or answers[-1].id in {stored.id for stored in turn.messages}:
        return TurnFailed(code="model_error", message="the loop ended without a new answer of the model")
    calls = log.open_calls(history, turn.tools)
    new = state.take_new(history)
    if calls:
        return TurnPaused(new=new, calls=calls)
    last = answers[-1]
    whole = is_whole((last.provider_data or {}).get(STOP_KEY))
    return TurnCompleted(new=new, text=last.get_content_string(), cut_off=not whole)
