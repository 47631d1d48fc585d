"""One call and the identity it runs under."""

import asyncio
from dataclasses import dataclass, field
from typing import Literal
from uuid import UUID

from agentic.contract.principal import Principal
from agentic.contract.trust import Trust
from agentic.services.tools.models import FrozenTool
from agentic.services.tools.records import Trail

CallOrigin = Literal["model", "workflow", "application", "bridge", "platform"]


@dataclass(frozen=True, kw_only=True, slots=True)
class ToolInvocation:
    """The ambient identity of a segment, shared by all of its calls. Not model context (T2)."""

    principal: Principal
    run_id: UUID
    root_run_id: UUID
    definition: str
    """Name of the definition whose grants decide."""
    fence: int
    """The run lease this worker holds."""
    tools: dict[str, FrozenTool]
    """The run's frozen contracts by platform name."""
    context_trust: Trust
    """Lowest label the run's context has held."""
    environment: Literal["live", "frozen"] = "live"
    deadline: float | None = None
    """Monotonic second at which the segment's slice ends; ``None`` for no slice."""
    parent_span_id: UUID | None = None
    cancelled: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when a person cancelled the run; handlers see it as ``CallContext.cancelled``."""
    trail: Trail = field(default_factory=Trail)
    """Where records go that are written with the segment's next append."""

    @property
    def organization_id(self) -> UUID:
        """The tenant of the call."""
        return self.principal.organization_id


@dataclass(frozen=True, kw_only=True, slots=True)
class ToolCall:
    """One proposed call."""

    tool: str
    """Platform name, or the name the model wrote when no tool has it."""
    arguments_text: str | None
    """The caller's own text, parsed once by the invoker (N2)."""
    step_path: str = "agent"
    origin: CallOrigin = "model"
    argument_trust: Trust = Trust.EXTERNAL
    """The caller's label of the arguments; of a model's own arguments it counts for nothing."""
    wire_call_id: str | None = None
    """The provider's id of the call; for the tree alone, never part of a key."""
    proposal_id: UUID | None = None
    """The stored proposal this call executes; ``None`` for a call made in the loop."""
    parallel_group: str | None = None
    """Shared by the calls that ran side by side; for the tree and telemetry alone."""
    fault: str | None = None
    """Why the proposal cannot run (cut off, unreadable); such a call is answered and recorded, nothing runs."""

    @property
    def label(self) -> Trust:
        """How far the arguments may be believed: a model's are external, whatever it was told (ADR 0012)."""
        return Trust.EXTERNAL if self.origin == "model" else self.argument_trust
