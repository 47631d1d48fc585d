"""Starting runs: once per request key, with everything frozen that the run will rest on (DECISIONS 6)."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol
from uuid import UUID

from agentic.contract.canonical import digest
from agentic.contract.errors import Conflict, ProgramFault
from agentic.contract.principal import Principal
from agentic.runtime.agent.definition import AgentDefinition
from agentic.runtime.agent.ports import AgentLoop
from agentic.runtime.agent.timings import Timings
from agentic.services.runs.models import NewRun, RunTree, Started
from agentic.services.runs.ports import RunStore
from agentic.services.tools.registry import ToolRegistry

MAX_INPUT_BYTES = 256 * 1024
MAX_KEY_CHARS = 200
Flush = Callable[[Sequence[UUID]], Awaitable[None]]


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
        timings: Timings | None = None,
    ) -> None:
        self._store = store
        self._registry = registry
        self._loop = loop
        self._models = models
        self._flush = flush
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
            Conflict: the key was used for another input.
            ProgramFault: a tool or the model of the definition cannot be used.
        """
        _check_text(text, request_key)
        names = [name for name in definition.tools if not principal.scopes or principal.may_name(name)]
        tools = self._registry.freeze(names)
        self._models.check_model(definition.model)
        shown = definition.model_copy(update={"tools": tuple(names)})
        frozen = shown.model_dump(mode="json")
        started = await self._store.start(
            NewRun(
                organization_id=principal.organization_id,
                user_id=principal.user_id,
                request_key=request_key,
                request_digest=digest(
                    [frozen, text, str(principal.user_id), [tool.spec.contract_hash for tool in tools]]
                ),
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


def _check_text(text: str, request_key: str) -> None:
    if not text.strip():
        raise ProgramFault("the input is empty; say what the agent should do")
    if len(text.encode("utf-8", "replace")) > MAX_INPUT_BYTES:
        raise Conflict(
            f"the input is larger than {MAX_INPUT_BYTES // 1024} KiB; put large material where a tool can read it"
        )
    if not request_key or len(request_key) > MAX_KEY_CHARS:
        raise ProgramFault(f"the request key has 1 to {MAX_KEY_CHARS} characters")
