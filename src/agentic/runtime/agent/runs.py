"""Starting runs: once per request key, with everything frozen that the run will rest on (ADR 0023)."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol
from uuid import UUID

from agentic.contract.canonical import digest
from agentic.contract.errors import Conflict, ProgramFault
from agentic.contract.normal_form import nfc
from agentic.contract.plain import clean_text, plain
from agentic.contract.principal import Principal
from agentic.runtime.agent.definition import AgentDefinition
from agentic.runtime.agent.ports import AgentLoop
from agentic.runtime.agent.publication import check_publication
from agentic.runtime.agent.timings import Timings
from agentic.services.runs.models import NewRun, RunTree, Started
from agentic.services.runs.ports import RunStore
from agentic.services.tools.declarations import Tool
from agentic.services.tools.models import FrozenTool, Mode, ToolSpec
from agentic.services.tools.registry import ToolRegistry

MAX_INPUT_BYTES = 256 * 1024
MAX_KEY_CHARS = 200
Flush = Callable[[Sequence[UUID]], Awaitable[None]]
MayAsk = Callable[[UUID, Sequence[ToolSpec]], Awaitable[frozenset[str]]]
"""The names, of these tools, whose calls a rule of this organization could put to a person."""


class ModelCheck(Protocol):
    """Says now, not in the middle of a run, that a model cannot be used."""

    def check_model(self, name: str) -> None:
        """Raises ``ProgramFault`` naming what is missing."""
        ...


class Runs:
    """Starts, cancels and shows runs."""

    def __init__(
        self,
        *,
        store: RunStore,
        registry: ToolRegistry,
        loop: AgentLoop,
        models: ModelCheck,
        flush: Flush,
        may_ask: MayAsk | None = None,
        timings: Timings | None = None,
    ) -> None:
        self._store = store
        self._registry = registry
        self._loop = loop
        self._models = models
        self._flush = flush
        self._may_ask = may_ask
        self._timings = timings or Timings()

    async def start(
        self,
        definition: AgentDefinition,
        text: str,
        *,
        principal: Principal,
        request_key: str,
        lane: str = "interactive",
    ) -> Started:
        """Start a run, or find the one an earlier start with the same key made.

        Args:
            definition: frozen into the run; later edits do not reach it.
            text: the user's words, at most 256 KiB.
            principal: who the run acts for. Tools outside its scopes are not shown; ``scopes=()`` means all of the definition's.
            request_key: unique per organization and request, at most 200 characters; the caller's guard against double submits.

        Raises:
            Conflict: the key was used for another agent, text or person. A deploy in between changes nothing: the key
                finds its run.
            ProgramFault: a tool or the model of the definition cannot be used, or a tool exceeds its maximum class.
        """
        text = clean_text(text)
        _check_text(text, request_key)
        tools = await self._frozen(definition, principal)
        self._models.check_model(definition.model)
        shown = definition.model_copy(update={"tools": tuple(tool.spec.name for tool in tools)})
        frozen = shown.model_dump(mode="json")
        started = await self._store.start(
            NewRun(
                organization_id=principal.organization_id,
                user_id=principal.user_id,
                request_key=request_key,
                request_digest=_request_digest([definition.name, text, str(principal.user_id)]),
                lane=lane,
                definition_name=definition.name,
                definition=frozen,
                tools=[
                    {"name": tool.spec.name, "contract_hash": tool.spec.contract_hash, "mode": str(tool.mode)}
                    for tool in tools
                ],
                contracts=[tool.spec for tool in tools],
                ceilings=definition.ceilings,
                message=self._loop.user_message(text),
                format=self._loop.format,
                deadline_s=self._timings.run_deadline_s,
            )
        )
        if started.nudge is not None:
            await self._flush([started.nudge])
        return started

    async def _frozen(self, definition: AgentDefinition, principal: Principal) -> list[FrozenTool]:
        """The run's contracts. What a rule could ask a person about runs from a stored proposal, reads too (ADR 0026)."""
        organization_id = principal.organization_id
        check_publication(definition, lambda name: _spec(self._registry.get(name, organization_id)))
        specs = await self._registry.specs_for_session(definition, principal, maximum=definition.maximum)
        inline = [spec for spec in specs if spec.mode is Mode.INLINE]
        asked = (
            await self._may_ask(organization_id, inline) if self._may_ask is not None and inline else frozenset[str]()
        )
        return [FrozenTool(spec=spec, mode=Mode.PAUSED if spec.name in asked else spec.mode) for spec in specs]

    async def cancel(self, organization_id: UUID, run_id: UUID, *, user_id: UUID | None = None) -> bool:
        """Ask a run to stop at its next call; ``False`` when it is over or stopping already."""
        nudge = await self._store.cancel(organization_id, run_id, user_id=user_id)
        if nudge is not None:
            await self._flush([nudge])
        return nudge is not None

    async def tree(self, organization_id: UUID, run_id: UUID) -> RunTree:
        """Everything a run can say about itself.

        Raises:
            NotFound: no such run in this organization.
        """
        return await self._store.tree(organization_id, run_id)


def _spec(tool: Tool | None) -> ToolSpec | None:
    return None if tool is None else tool.spec


def _request_digest(request: object) -> str:
    """What two starts with one key must share. People write in any Unicode form, so the text is brought into form C for it."""
    return digest(nfc(plain(request)))


def _check_text(text: str, request_key: str) -> None:
    if not text.strip():
        raise ProgramFault("the input is empty; say what the agent should do")
    if len(text.encode("utf-8", "replace")) > MAX_INPUT_BYTES:
        raise Conflict(
            f"the input is larger than {MAX_INPUT_BYTES // 1024} KiB; put large material where a tool can read it"
        )
    if not request_key or len(request_key) > MAX_KEY_CHARS or clean_text(request_key) != request_key:
        raise ProgramFault(
            f"the request key has 1 to {MAX_KEY_CHARS} characters, none of them U+0000 or half a character"
        )
