"""A run without a runtime: tools, hooks that keep what they are given, and turns that know nothing but stored messages."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from agno.models.base import Model

from agentic.contract.trust import Trust
from agentic.runtime.agent.agno.runtime import AgnoLoop
from agentic.runtime.agent.definition import AgentDefinition
from agentic.runtime.agent.ports import Answer, ModelAttempt, ProposedCall, RunMessage, Turn, TurnEnd, TurnPaused
from agentic.services.tools.models import FrozenTool, HandlerBinding, IdempotencyClass, Risk, SideEffects, ToolSpec

BOUND_S = 10
INSTRUCTIONS = "Look people up, then write. Keep {braces} as they are."


def frozen(name: str, effect: SideEffects, schema: dict[str, Any] | None = None, **fields: Any) -> FrozenTool:
    """A tool as a run froze it."""
    reads = effect is SideEffects.READ
    spec = ToolSpec(
        name=name,
        description=fields.pop("description", f"The tool {name}."),
        input_schema=schema or {"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"]},
        output_schema={"type": "object"},
        binding=HandlerBinding(handler_key=name),
        side_effects=effect,
        idempotency=IdempotencyClass.READ_ONLY if reads else IdempotencyClass.NON_IDEMPOTENT,
        risk=fields.pop("risk", Risk.LOW),
        **fields,
    )
    return FrozenTool(spec=spec, mode=spec.mode)


SEARCH = frozen("crm.search", SideEffects.READ)
UPSERT = frozen("crm.upsert", SideEffects.WRITE)
SEND = frozen("email.send", SideEffects.SEND)
TOOLS = (SEARCH, UPSERT, SEND)


class Hooks:
    """Keeps what the loop hands over, in order."""

    def __init__(self) -> None:
        self.stored: list[RunMessage] = []
        self.requests = 0
        self.events: list[str] = []
        self.reads: list[ProposedCall] = []
        self.attempts: list[ModelAttempt] = []
        self.words: list[str] = []
        self.answer_only = False

    async def before_request(self, new: Sequence[RunMessage]) -> bool:
        self.requests += 1
        self.events.append("request")
        self.stored += new
        return self.answer_only

    async def answered(self, assistant: RunMessage, calls: Sequence[ProposedCall]) -> None:
        self.events.append("answered")
        self.stored.append(assistant)

    async def read(self, call: ProposedCall) -> Answer:
        self.events.append(f"read {call.model_call_id}")
        self.reads.append(call)
        return Answer(text=result_of(call), trust=Trust.EXTERNAL)

    def said(self, text: str) -> None:
        self.words.append(text)

    def attempted(self, attempt: ModelAttempt) -> None:
        self.attempts.append(attempt)


def result_of(call: ProposedCall) -> str:
    """The result of a call in these tests: names the tool and what it was asked."""
    return f'{{"tool":"{call.tool}","asked":{call.arguments_text}}}'


class StagedRun:
    """A run whose only memory between turns is its stored messages."""

    def __init__(
        self,
        model: Callable[[], Model],
        *,
        tools: Sequence[FrozenTool] = TOOLS,
        stream: bool = True,
        say: str = "Write to {Ada}",
    ) -> None:
        self._model = model
        self._stream = stream
        self.tools = tools
        self.hooks = Hooks()
        self.log: list[RunMessage] = [self.loop().user_message(say)]

    def loop(self) -> AgnoLoop:
        """A loop that remembers nothing."""
        return AgnoLoop({"staged": self._model}, stream=self._stream)

    async def turn(self) -> TurnEnd:
        """One turn, from and into the log."""
        definition = AgentDefinition(name="staged", instructions=INSTRUCTIONS, model="staged")
        given = Turn(definition=definition, tools=self.tools, messages=tuple(self.log))
        before = len(self.hooks.stored)
        loop = self.loop()
        async with asyncio.timeout(BOUND_S):
            try:
                end = await loop.turn(given, self.hooks)
            finally:
                await loop.aclose()
                self.log += self.hooks.stored[before:]
        self.log += getattr(end, "new", ())
        return end

    def drain(self, *, backwards: bool = False) -> list[ProposedCall]:
        """Answer every open call; ``backwards`` appends the answers in reverse order."""
        calls = self.loop().open_calls(self.log, self.tools)
        for call in reversed(calls) if backwards else calls:
            answer = Answer(text=result_of(call), trust=Trust.INTERNAL)
            self.log.append(self.loop().tool_message(call, answer))
        return calls

    async def to_end(self) -> TurnEnd:
        """Turns and drains until the model answers or fails."""
        while True:
            end = await self.turn()
            if not isinstance(end, TurnPaused):
                return end
            self.drain()
