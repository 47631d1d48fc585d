"""What the edges of a platform need of it: the API, the durable functions, the workflows of a product."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from agentic.api.ports import ApiPorts
from agentic.bootstrap.platform import Platform
from agentic.functions.ports import FunctionPorts

if TYPE_CHECKING:
    from agentic.runtime.workflow import Workflows


def api_ports(platform: Platform) -> ApiPorts:
    """What the API needs of a platform."""

    async def health() -> None:
        await platform.database.one("select 1 as alive", {})

    return ApiPorts(
        runs=platform.runs,
        run_store=platform.run_store,
        events=platform.events,
        usage=platform.usage,
        approvals=platform.approvals,
        journal=platform.journal,
        audit=platform.audit,
        artifacts=platform.artifacts,
        mcp=platform.mcp,
        webhooks=platform.webhooks,
        account_events=platform.account_events,
        agent=platform.app.agent,
        role=platform.approval_store.role,
        health=health,
    )


def workflows(platform: Platform) -> "Workflows":
    """What runs the bodies of a product's own durable functions over a platform (docs/workflows.md)."""
    from agentic.runtime.workflow import Workflows  # imports the SDK, which those without functions need not pay
    from agentic.runtime.workflow.leading import NodeLeader

    leader = NodeLeader(
        workflows=platform.workflow_store,
        runs=platform.run_store,
        invoker=platform.invoker,
        registry=platform.registry,
        clock=platform.clock,
        flush=platform.outbox.flush,
        timings=platform.timings,
        environment=platform.environment,
        arrivals=platform.servers,
    )
    return Workflows(store=platform.workflow_store, leader=leader, jobs=platform.jobs)


def function_ports(platform: Platform) -> FunctionPorts:
    """What the durable functions need of a platform."""
    made = platform.app.functions
    return FunctionPorts(
        leader=platform.leader,
        sweeper=platform.sweeper,
        cleaner=platform.retention,
        summing=platform.rollup,
        settling=platform.settling,
        reconciling=platform.reconciling,
        probing=platform.mcp,
        runs_at_once=platform.app.capacity.runs_at_once,
        of_app=None if made is None else partial(_of_app, made, platform),
    )


def _of_app(made: Callable[[Any, "Workflows"], Sequence[Any]], platform: Platform, client: object) -> Sequence[Any]:
    return made(client, workflows(platform))
