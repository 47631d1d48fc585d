"""What a tool is: the validated catalogue of this deployment. It never answers whether a call is allowed.

Code tools are registered whole or not at all, with every fault named (N1, N3); tools that arrive later are let in one by one and belong
to one organization. Which of them a new run is shown is decided here, once; what is true at a call is read by the call.
"""

import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Protocol
from uuid import UUID

from agentic.contract.errors import ProgramFault, RegistryError
from agentic.contract.principal import Principal
from agentic.contract.tool_patterns import covers, is_pattern
from agentic.services.tools.declarations import Tool
from agentic.services.tools.dynamic import AnyArguments, RegistrationReport, admit
from agentic.services.tools.live import EverythingLive, LiveStates
from agentic.services.tools.maximum import MaximumClass
from agentic.services.tools.models import FrozenTool, Source, ToolSpec
from agentic.services.tools.ports import ToolHandler
from agentic.services.tools.registration import RESERVED_FACTS, URL_SEEN, clashes, tool_faults
from agentic.services.tools.targets import EXECUTABLE_TARGETS, executable

__all__ = ["RESERVED_FACTS", "URL_SEEN", "AgentTools", "RuntimeEnvironment", "ToolRegistry", "build_registry"]

_log = logging.getLogger(__name__)
HandlerOf = Callable[[ToolSpec], ToolHandler]
"""Makes the code behind a tool that arrived."""


class AgentTools(Protocol):
    """What the registry reads of an agent's definition."""

    @property
    def tools(self) -> tuple[str, ...]:
        """Platform names, in the order the model is shown them; ``mcp.<server>.*`` stands for all that a server offers."""
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class RuntimeEnvironment:
    """Where runs of this deployment take place.

    A freeze is no part of it: it is lifted while runs live, so their calls are denied while it lasts and nothing is hidden from them.
    """

    targets: frozenset[str] = EXECUTABLE_TARGETS
    """The places whose tools can be run."""


@dataclass(frozen=True, kw_only=True, slots=True)
class _Arrived:
    """A tool that was brought while the deployment runs."""

    tool: Tool
    withheld: bool
    """It is there for runs that have it, and not given to new ones."""


class ToolRegistry:
    """The runnable tools, by platform name. ``build_registry`` makes one.

    Args:
        tools: code tools, checked.
        states: reads what is switched off or released; ``None`` where there is no database, and everything is live.
        facts: names of the facts the deployment can find out.
    """

    def __init__(self, tools: Iterable[Tool], *, states: LiveStates | None = None, facts: Collection[str] = ()) -> None:
        self._tools = {tool.spec.name: tool for tool in tools}
        self._arrived: dict[UUID, dict[str, _Arrived]] = {}
        self._registering = Lock()
        self._states: LiveStates = states or EverythingLive()
        self._facts = frozenset(facts)

    def __iter__(self) -> Iterator[Tool]:
        """The code tools."""
        return iter(self._tools.values())

    def __len__(self) -> int:
        return len(self._tools)

    def get(self, name: str, organization_id: UUID | None = None) -> Tool | None:
        """The tool of this name, or ``None``.

        Args:
            organization_id: whose arrived tools count too; ``None`` for code tools alone.
        """
        found = self._tools.get(name)
        if found is None and organization_id is not None:
            arrived = self._arrived.get(organization_id, {}).get(name)
            found = arrived.tool if arrived is not None else None
        return found

    def resolve(self, names: Sequence[str], organization_id: UUID | None = None) -> list[ToolSpec]:
        """The specs of these names, in this order, each once.

        Raises:
            ProgramFault: names no tool has, all of them.
        """
        found = {name: self.get(name, organization_id) for name in names}
        missing = [name for name, tool in found.items() if tool is None]
        if missing:
            raise ProgramFault(
                f"no tool is registered under {', '.join(missing)}; register it or take it out of the definition"
            )
        return [tool.spec for tool in found.values() if tool is not None]

    def expand(self, names: Sequence[str], organization_id: UUID) -> tuple[str, ...]:
        """The names with each pattern replaced by what its server offers to a new run, in name order; each name once.

        A server that offers nothing now leaves nothing, and a warning in the log.
        """
        expanded: list[str] = []
        for name in names:
            if not is_pattern(name):
                expanded.append(name)
                continue
            found = sorted(each for each in self._offered(organization_id) if covers(name, each))
            if not found:
                _log.warning("no tool is offered now under %s in organization %s", name, organization_id)
            expanded += found
        return tuple(dict.fromkeys(expanded))

    def _offered(self, organization_id: UUID) -> dict[str, Tool]:
        """The tools that arrived in an organization and that a new run may have."""
        arrived = self._arrived.get(organization_id, {})
        return {name: each.tool for name, each in arrived.items() if not each.withheld}

    def _withheld(self, name: str, organization_id: UUID) -> bool:
        arrived = self._arrived.get(organization_id, {}).get(name)
        return arrived is not None and arrived.withheld

    def freeze(self, names: Sequence[str], organization_id: UUID | None = None) -> list[FrozenTool]:
        """The contracts a run freezes for these names, in this order.

        Raises:
            ProgramFault: names no tool has.
        """
        return [FrozenTool(spec=spec, mode=spec.mode) for spec in self.resolve(names, organization_id)]

    async def list_for_organization(self, organization_id: UUID) -> list[ToolSpec]:
        """The tools a run of this organization could be given now: neither switched off there, nor deprecated, nor revoked."""
        live = await self._states.live(organization_id)
        every = [*self._tools.values(), *self._offered(organization_id).values()]
        return [tool.spec for tool in every if live.offers(tool.spec)]

    async def specs_for_session(
        self,
        agent: AgentTools,
        principal: Principal,
        *,
        environment: RuntimeEnvironment | None = None,
        maximum: MaximumClass | None = None,
    ) -> list[ToolSpec]:
        """The tools a new run is shown: four filters, applied once. Authority is not among them; it is read at every call.

        Args:
            agent: names the tools, in the order the model is shown them.
            principal: who the run acts for; ``scopes=()`` leaves out nothing.
            environment: leaves out tools that cannot be run there; ``None`` for this deployment.
            maximum: leaves out tools beyond it; ``None`` for no bound.

        Raises:
            ProgramFault: the agent names tools that nobody registered, all of them. One that is switched off, or withheld from new
                runs, is left out silently.
        """
        targets = (environment or RuntimeEnvironment()).targets
        bound = maximum or MaximumClass()
        organization_id = principal.organization_id
        named = self.expand(agent.tools, organization_id)
        names = [name for name in named if not principal.scopes or principal.may_name(name)]
        specs = self.resolve(names, organization_id)
        live = await self._states.live(organization_id)
        return [
            spec
            for spec in specs
            if not self._withheld(spec.name, organization_id)
            and live.offers(spec)
            and executable(spec, targets)
            and bound.excess(spec) is None
        ]

    def register_dynamic(
        self,
        specs: Sequence[ToolSpec],
        source: Source,
        *,
        organization_id: UUID,
        handler: HandlerOf,
        replacing: Collection[str] = (),
        withheld: Collection[str] = (),
    ) -> RegistrationReport:
        """Let in tools that an MCP server, a device or a sandbox brings to one organization.

        An entry of a name that came from this source before takes its place, or takes it away when it is rejected now. All of it
        happens at once, and may happen in a thread: checking hundreds of schemas takes seconds.

        Args:
            source: where all of them come from; overwrites what they say, and their trust with it.
            organization_id: nobody else ever sees them (T1).
            handler: makes the code that reaches each of them.
            replacing: names of an earlier batch of this source that leave with this one, unless they are in it again.
            withheld: which of the entries are there for the runs that have them, and not given to new ones.

        Returns:
            What became of every entry, with the reason of each rejection.

        Raises:
            ProgramFault: ``source`` is ``builtin``; code is registered when the deployment starts, and only then.
        """
        if source == "builtin":
            raise ProgramFault("tools written as code are declared in the app; none is registered while it runs")
        with self._registering:
            return self._registered(specs, source, organization_id, handler, set(replacing), set(withheld))

    def _registered(
        self,
        specs: Sequence[ToolSpec],
        source: Source,
        organization_id: UUID,
        handler: HandlerOf,
        replacing: set[str],
        withheld: set[str],
    ) -> RegistrationReport:
        arrived = {
            name: each
            for name, each in self._arrived.get(organization_id, {}).items()
            if name not in replacing or each.tool.spec.source != source
        }
        let_in, report = admit(specs, source, code=self._tools.keys(), present=arrived.keys(), facts=self._facts)
        made = {
            spec.name: _Arrived(
                tool=Tool(spec=spec, handler=handler(spec), input_model=AnyArguments), withheld=spec.name in withheld
            )
            for spec in let_in
        }
        kept = {
            name: each
            for name, each in arrived.items()
            if name not in report.rejected or each.tool.spec.source != source
        }
        self._arrived[organization_id] = kept | made
        return report


def build_registry(
    tools: Iterable[Tool], *, facts: Collection[str] = (), states: LiveStates | None = None
) -> ToolRegistry:
    """Validate the declarations and build the catalogue.

    Args:
        tools: every tool of the deployment's code.
        facts: names of the facts that the deployment can find out.
        states: reads what is switched off or released; ``None`` where there is no database.

    Raises:
        RegistryError: naming every fault of every declaration.
    """
    listed = list(tools)
    faults = registration_faults(listed, facts=facts)
    if faults:
        raise RegistryError(faults)
    return ToolRegistry(listed, states=states, facts=facts)


def registration_faults(tools: Sequence[Tool], *, facts: Collection[str] = ()) -> list[str]:
    """Every fault of every declaration, and every clash between them; empty when all can be registered."""
    faults = [fault for tool in tools for fault in tool_faults(tool, facts=facts)]
    return [*faults, *(fault for _, fault in clashes([tool.spec for tool in tools]))]
