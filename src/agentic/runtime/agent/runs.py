"""Starting runs: once per request key, with everything frozen that the run will rest on (ADR 0023), and asking them to stop."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Protocol
from uuid import UUID

from agentic.contract.errors import Conflict, ProgramFault
from agentic.contract.lanes import Lane
from agentic.contract.plain import clean_text
from agentic.contract.principal import Principal, RunCeilings
from agentic.contract.tool_patterns import names_remote
from agentic.runtime.agent.definition import AgentDefinition
from agentic.runtime.agent.family import check_parent, inherited
from agentic.runtime.agent.history import MAX_RUNS, history
from agentic.runtime.agent.ports import AgentLoop, RunMessage
from agentic.runtime.agent.publication import check_publication
from agentic.runtime.agent.starting import MAX_INPUT_BYTES, MAX_KEY_CHARS, MAX_SESSION_CHARS, Request, check
from agentic.runtime.agent.timings import Timings
from agentic.services.runs.models import NewRun, Place, RunPage, RunQuery, RunTree, Started
from agentic.services.runs.ports import RunStore
from agentic.services.tools.arriving import Arrivals, NothingArrives
from agentic.services.tools.declarations import Tool
from agentic.services.tools.models import FrozenTool, Mode, ToolSpec
from agentic.services.tools.registry import ToolRegistry

__all__ = ["MAX_INPUT_BYTES", "MAX_KEY_CHARS", "MAX_REASON_CHARS", "MAX_SESSION_CHARS", "ModelCheck", "Runs"]

MAX_REASON_CHARS = 1000
Flush = Callable[[Sequence[UUID]], Awaitable[None]]
MayAsk = Callable[[UUID, Sequence[ToolSpec]], Awaitable[frozenset[str]]]
"""The names, of these tools, whose calls a rule of this organization could put to a person."""
Agents = Callable[[str], AgentDefinition]
"""The definition the app declares under a name; raises ``ProgramFault`` for a name it does not."""


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
        arrivals: Arrivals | None = None,
        agents: Agents | None = None,
        timings: Timings | None = None,
    ) -> None:
        self._store = store
        self._registry = registry
        self._loop = loop
        self._models = models
        self._flush = flush
        self._may_ask = may_ask
        self._arrivals: Arrivals = arrivals or NothingArrives()
        self._agents = agents
        self._timings = timings or Timings()

    async def start(
        self,
        definition: AgentDefinition | str,
        text: str,
        *,
        principal: Principal,
        request_key: str,
        lane: str = Lane.INTERACTIVE,
        ceilings: RunCeilings | None = None,
        deadline_s: float | None = None,
        session: str | None = None,
        parent: UUID | None = None,
    ) -> Started:
        """Start a run, or find the one an earlier start with the same key made.

        Args:
            definition: frozen into the run, later edits do not reach it; or the name of one that the app declares.
            text: the user's words, at most 256 KiB.
            principal: who the run acts for. Tools outside its scopes are not shown; ``scopes=()`` means all of the definition's, and
                ``mcp.<server>.*`` all of a server's.
            request_key: unique per organization and request, at most 200 characters; the caller's guard against double submits.
            lane: ``interactive`` or ``batch``.
            ceilings: lower the definition's, in what they name; nothing rises.
            deadline_s: calendar seconds until the run fails wherever it stands, waits included, at most a year; ``None`` for the
                deployment's own, 30 days.
            session: the caller's own id of a conversation, at most 200 characters, one of each organization and person. The run
                begins with what the session's ended runs said (ADR 0032).
            parent: the run that starts this one. The child has no tool its parent lacks, spends from the budget of its tree,
                believes no more than its parent, and does not outlive it.

        Raises:
            Conflict: the key was used for another agent, text, person, session, parent or bound. A deploy in between changes
                nothing: the key finds its run. Or the input is too large.
            ParentRefuses: the parent is being cancelled, over or too deep; nothing of the child exists.
            NotFound: there is no such parent in this organization.
            NotPermitted: the parent acts for another person.
            ProgramFault: lane, deadline, session or key cannot be, a tool or the model of the definition cannot be used, or a
                tool exceeds its maximum class.
        """
        definition = self._named(definition) if isinstance(definition, str) else definition
        request = Request(
            text=clean_text(text),
            request_key=request_key,
            lane=lane,
            ceilings=ceilings,
            deadline_s=deadline_s,
            session=session,
            parent=parent,
        )
        check(request)
        request_digest = request.digest(agent=definition.name, user_id=principal.user_id)
        if parent is not None:
            earlier = await self._store.find(principal.organization_id, request_key, request_digest=request_digest)
            if earlier is not None:  # also after the parent's end
                return Started(run_id=earlier, created=False, nudge=None)
        definition = await self._with_arrived(definition, principal)
        if parent is not None:
            definition = await self._below(definition, parent, principal)
        tools = await self._frozen(definition, principal)
        self._models.check_model(definition.model)
        shown = definition.model_copy(update={"tools": tuple(tool.spec.name for tool in tools)})
        started = await self._store.start(
            NewRun(
                organization_id=principal.organization_id,
                user_id=principal.user_id,
                request_key=request_key,
                request_digest=request_digest,
                lane=lane,
                definition_name=definition.name,
                definition=shown.model_dump(mode="json"),
                tools=[
                    {"name": tool.spec.name, "contract_hash": tool.spec.contract_hash, "mode": str(tool.mode)}
                    for tool in tools
                ],
                contracts=[tool.spec for tool in tools],
                ceilings=definition.ceilings if ceilings is None else definition.ceilings.lowered_by(ceilings),
                message=self._loop.user_message(request.text),
                history=await self._history(session, principal),
                format=self._loop.format,
                deadline_s=self._timings.run_deadline_s if deadline_s is None else deadline_s,
                session_id=session,
                parent_run_id=parent,
            )
        )
        if started.nudge is not None:
            await self._flush([started.nudge])
        return started

    def _named(self, name: str) -> AgentDefinition:
        if self._agents is None:
            raise ProgramFault(f"no app declares agents here, so {name!r} names none; start a definition itself")
        return self._agents(name)

    async def _with_arrived(self, definition: AgentDefinition, principal: Principal) -> AgentDefinition:
        """The definition with the tools of servers that it names as they are offered now, a whole server's by their names."""
        if not names_remote(definition.tools):
            return definition
        await self._arrivals.refresh(principal.organization_id)
        return definition.model_copy(
            update={"tools": self._registry.expand(definition.tools, principal.organization_id)}
        )

    async def _below(self, definition: AgentDefinition, parent: UUID, principal: Principal) -> AgentDefinition:
        found = await self._store.parent(principal.organization_id, parent)
        check_parent(found, principal)
        self._registry.resolve(definition.tools, principal.organization_id)  # a name nobody has is a fault here too
        return inherited(definition, found)

    async def _history(self, session: str | None, principal: Principal) -> list[RunMessage]:
        if session is None:
            return []
        so_far = await self._store.session(
            principal.organization_id, session, user_id=principal.user_id, limit=MAX_RUNS
        )
        return history(so_far, self._loop)

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

    async def cancel(
        self, organization_id: UUID, run_id: UUID, *, user_id: UUID | None = None, reason: str | None = None
    ) -> bool:
        """Ask a run, and the open runs below it, to stop at their next call; ``False`` when all are over or stopping already.

        Args:
            reason: why, for people, at most 1,000 characters; kept in the run's row.

        Raises:
            Conflict: the reason is too long.
        """
        reason = None if reason is None else clean_text(reason).strip() or None
        if reason is not None and len(reason) > MAX_REASON_CHARS:
            raise Conflict(f"the reason of a cancellation has at most {MAX_REASON_CHARS} characters")
        nudges = await self._store.cancel(organization_id, run_id, user_id=user_id, reason=reason)
        await self._flush(nudges)
        return bool(nudges)

    async def get(self, organization_id: UUID, run_id: UUID) -> Mapping[str, Any]:
        """A run's own row.

        Raises:
            NotFound: no such run in this organization.
        """
        return await self._store.row(organization_id, run_id)

    async def page(
        self, organization_id: UUID, query: RunQuery | None = None, *, limit: int = 50, behind: Place | None = None
    ) -> RunPage:
        """Runs, the newest first.

        Args:
            query: which; ``None`` for all.
            limit: how many at most.
            behind: where to go on: ``RunPage.behind`` of the page before.
        """
        return await self._store.page(organization_id, query or RunQuery(), limit=limit, behind=behind)

    async def tree(self, organization_id: UUID, run_id: UUID) -> RunTree:
        """Everything a run can say about itself, and the runs of its tree.

        Raises:
            NotFound: no such run in this organization.
        """
        return await self._store.tree(organization_id, run_id)


def _spec(tool: Tool | None) -> ToolSpec | None:
    return None if tool is None else tool.spec
