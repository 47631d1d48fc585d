"""What a deployment declares."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from agentic.contract.errors import ProgramFault
from agentic.runtime.agent.definition import AgentDefinition
from agentic.services.capacity.declared import Capacity
from agentic.services.connections.account_events import AccountEvents
from agentic.services.policy import Fact
from agentic.services.provider_jobs.ports import JobProvider, SubmittedJobs
from agentic.services.retention.models import RetentionPeriods
from agentic.services.tools.connections import ConnectionPort
from agentic.services.tools.declarations import Tool
from agentic.services.tools.scoped_db import ScopedDatabase
from agentic.services.tools.scoped_tables import Tables

if TYPE_CHECKING:
    from agentic.runtime.workflow import Workflows


@dataclass(frozen=True, kw_only=True)
class App:
    """What a deployment declares: its tools, its agents, its own models. Import paths such as ``my.module:app`` name one.

    Attributes:
        tools: every tool of the deployment; faulty declarations are all named when the app is opened.
        agents: definitions that can be started by name.
        models: factories of model objects by name, beside the ``provider:model`` strings that always work.
        scoped_tools: each makes tools over the tables of organizations, of what reaches those (docs/scoped-db.md).
        scoped_tables: a product's own tables with an ``organization_id``, each with its other columns; tools reach them as the package's.
        providers: whose work is finished after the call that began it; each brings its tools (docs/provider-jobs.md).
        account_events: providers that tell of connected accounts, such as a consent that has ended (docs/connections.md).
        capacity: how many runs are active at once, and the vendor accounts that have to bear them; ``agentic capacity check`` does the sum.
        retention: for how long runs and what they leave are kept.
        functions: makes the durable functions of your own workflows, of the SDK's client and what runs their bodies; every worker
            serves them (docs/workflows.md).
        connections: where the accounts of calls come from, in place of the database's vault; for tests and demonstrations.
        facts: what policy rules may ask about calls beyond their arguments; every name in a tool's ``policy_facts`` is one of them.
    """

    tools: Sequence[Tool] = ()
    scoped_tools: Sequence[Callable[[ScopedDatabase], Sequence[Tool]]] = ()
    scoped_tables: Tables = field(default_factory=dict)
    agents: Sequence[AgentDefinition] = ()
    models: Mapping[str, Callable[[], object]] = field(default_factory=dict)
    facts: Sequence[Fact] = ()
    providers: Sequence[JobProvider] = ()
    account_events: Sequence[AccountEvents] = ()
    capacity: Capacity = field(default_factory=Capacity)
    retention: RetentionPeriods = field(default_factory=RetentionPeriods)
    connections: ConnectionPort | None = None
    functions: Callable[[Any, "Workflows"], Sequence[Any]] | None = None

    def declared_tools(self, jobs: SubmittedJobs | None = None, scoped: ScopedDatabase | None = None) -> list[Tool]:
        """Every tool: the app's own, those over tables of organizations, and those of its providers.

        Args:
            jobs: what the providers' tools work on; ``None`` for tools that are looked at and not run.
            scoped: what the tools over tables work on; ``None`` likewise.
        """
        store = jobs if jobs is not None else cast("SubmittedJobs", _NotOpened())
        tables = scoped if scoped is not None else cast("ScopedDatabase", _NotOpened())
        return [
            *self.tools,
            *(tool for make in self.scoped_tools for tool in make(tables)),
            *(tool for provider in self.providers for tool in provider.tools(store)),
        ]

    def agent(self, name: str) -> AgentDefinition:
        """The definition of this name.

        Raises:
            ProgramFault: the app declares none.
        """
        for definition in self.agents:
            if definition.name == name:
                return definition
        known = ", ".join(definition.name for definition in self.agents) or "none"
        raise ProgramFault(f"the app declares no agent {name!r}; it declares {known}")


class _NotOpened:
    """Stands where the jobs of an opened app would."""

    def __getattr__(self, name: str) -> object:
        raise ProgramFault("the app is not joined to a database, so its tools cannot run; open it with open_platform")
