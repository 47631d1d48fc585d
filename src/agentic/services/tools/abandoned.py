"""Claims nobody proposes again, of tools that can be asked: the probe answers before an operator has to (ADR 0009, J5).

Whoever asks holds the claim's lease for as long, and settles under its epoch and attempt: a process that dies in here leaves the claim
to the next sweep, and two sweeps never settle one claim twice. A probe only reads, so asking again does no harm.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol
from uuid import UUID

from agentic.contract.errors import ClaimInFlight, ClaimLost
from agentic.contract.principal import Principal
from agentic.contract.trust import Trust
from agentic.services.tools.calls import ToolCall, ToolInvocation
from agentic.services.tools.models import FrozenTool, ToolSpec
from agentic.services.tools.ports import JournalRow
from agentic.services.tools.registry import ToolRegistry


@dataclass(frozen=True, kw_only=True, slots=True)
class AbandonedCall:
    """A claim past its lease whose effect may have happened, with what its call was."""

    organization_id: UUID
    scope: str
    key: str
    row: JournalRow
    run_id: UUID
    root_run_id: UUID
    user_id: UUID | None
    definition: str
    fence: int
    spec: ToolSpec
    """As the run froze it."""
    arguments_text: str | None
    step_path: str
    proposal_id: UUID | None
    origin_trust: Trust

    @property
    def ref(self) -> str:
        """Names this attempt and no other."""
        return f"{self.organization_id} {self.scope} {self.key} {self.row.epoch} {self.row.attempt}"


class ProbingInvoker(Protocol):
    """The invoker, as far as it settles what it did not begin."""

    async def settle_by_probe(self, call: ToolCall, inv: ToolInvocation, row: JournalRow, *, key: str) -> bool:
        """Ask the tool's probe; ``False`` when it cannot tell."""
        ...


class AbandonedCalls:
    """Asks the probes of a deployment's code tools."""

    def __init__(self, *, registry: ToolRegistry, invoker: ProbingInvoker) -> None:
        self._invoker = invoker
        self._registry = registry

    @property
    def tools(self) -> Sequence[str]:
        """Names of the tools that can be asked."""
        return [tool.spec.name for tool in self._registry if tool.probe is not None]

    async def settle(self, call: AbandonedCall) -> bool:
        """Ask whether the call happened, and settle it by the answer; ``False`` when nobody can tell, and an operator must.

        Raises:
            StorageUnavailable: the answer could not be stored; the claim is asked about again after its lease.
        """
        asked = ToolCall(
            tool=call.spec.name,
            arguments_text=call.arguments_text,
            step_path=call.step_path,
            origin="platform",
            argument_trust=call.origin_trust,
            proposal_id=call.proposal_id,
        )
        try:
            return await self._invoker.settle_by_probe(asked, _invocation(call), call.row, key=call.key)
        except ClaimInFlight:  # it did not happen, and is free to be made
            return True
        except ClaimLost:  # the worker was slow and not dead, or a later one took over
            return True


def _invocation(call: AbandonedCall) -> ToolInvocation:
    return ToolInvocation(
        principal=Principal(organization_id=call.organization_id, user_id=call.user_id, scopes=(call.spec.name,)),
        run_id=call.run_id,
        root_run_id=call.root_run_id,
        definition=call.definition,
        fence=call.fence,
        tools={call.spec.name: FrozenTool(spec=call.spec, mode=call.spec.mode)},
        context_trust=call.origin_trust,
    )
