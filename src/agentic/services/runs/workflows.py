"""The runs of a caller's own durable function: a container for each of its runs, and a run for each node in it (ADR 0033).

A node's run holds the lease, the journal and the questions of its one call, so nodes that run side by side share none of them; money,
time and cancellation hang on the container. Nobody leads these runs but the function they belong to.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol
from uuid import UUID

from agentic.contract.principal import RunCeilings
from agentic.contract.trust import Trust
from agentic.services.runs.models import LedRun, RunEnd
from agentic.services.tools.models import ToolSpec

RESULT = "result"
"""Id of the message that holds a node's answer."""


@dataclass(frozen=True, kw_only=True, slots=True)
class NewContainer:
    """The run of one run of a function, as its first node stores it. The same function run makes the same one."""

    id: UUID
    organization_id: UUID
    user_id: UUID | None
    workflow: str
    """Name of the workflow, whose grants decide."""
    request_key: str
    lane: str
    tools: Sequence[Mapping[str, Any]]
    """(name, contract_hash, mode) of each frozen tool."""
    contracts: Sequence[ToolSpec]
    ceilings: RunCeilings
    trust: Trust
    """Of the function's input."""
    deadline_s: float


@dataclass(frozen=True, kw_only=True, slots=True)
class NewNode:
    """The run of one node."""

    id: UUID
    name: str
    """The node's id in the function, and its step path."""
    digest: str
    """Of tool and arguments: the node runs this call and no other."""


@dataclass(frozen=True, kw_only=True, slots=True)
class LedNode:
    """A node whose lease was just taken."""

    led: LedRun
    out_of_calls: bool
    """The workflow has made as many calls as it may."""


@dataclass(frozen=True, kw_only=True, slots=True)
class NodeView:
    """Where a node stands."""

    container_state: str
    container_error: str | None
    cancelled: bool
    overdue: bool
    state: str | None
    """``None`` for a node that has no run yet."""
    error_code: str | None
    digest: str | None
    due: bool
    """Nothing keeps it from running now: its question has an answer, its time has come, no lease is live."""
    due_at: datetime
    """When a lease or a wait of its own ends."""
    within_s: float
    """Seconds until its question expires or the workflow's time is over; negative when that is past."""
    result: bytes | None
    """Its answer, if it has one."""

    @property
    def open(self) -> bool:
        """Whether the workflow goes on."""
        return self.container_state in ("queued", "running", "parked")


class WorkflowStore(Protocol):
    """The rows of workflows; what a node does under its lease goes through ``RunStore``."""

    async def open(self, container: NewContainer, node: NewNode, *, lease_s: float) -> LedNode | NodeView:
        """Store container and node unless they are there, and take the node's lease; one transaction.

        Returns:
            The lease, or where the node stands when it is not due: ended, waiting, led by another worker, or in a workflow that is over.
        """
        ...

    async def look(self, organization_id: UUID, container_id: UUID, node_id: UUID) -> NodeView | None:
        """Where a node stands; ``None`` before its workflow has a container."""
        ...

    async def end(self, organization_id: UUID, container_id: UUID, end: RunEnd) -> bool:
        """End a container and what its nodes still ask; ``False`` when it is over already, or was never there (W4)."""
        ...

    async def sweep(self, *, limit: int) -> tuple[int, Sequence[UUID]]:
        """End what outlived its deadline, its cancellation or its container; how many rows, and the nudges that wake who waits."""
        ...
