"""One run of a workflow's function, as its nodes know it; no SDK."""

from dataclasses import dataclass
from uuid import UUID

from agentic.contract.lanes import Lane
from agentic.contract.principal import Principal, RunCeilings
from agentic.contract.trust import Trust
from agentic.runtime.workflow.identity import container_id, request_key


@dataclass(frozen=True, kw_only=True, slots=True)
class Flow:
    """Whose calls these are, and what bounds them."""

    principal: Principal
    definition: str
    """Under which name grants stand."""
    run_id: str
    """The function server's."""
    tools: tuple[str, ...]
    ceilings: RunCeilings
    trust: Trust
    """Of the function's input."""
    lane: Lane
    deadline_s: float

    @property
    def request_key(self) -> str:
        """What the container is found by, in its organization."""
        return request_key(self.definition, self.run_id)

    @property
    def container(self) -> UUID:
        """The run that bounds the workflow: its tree, money, deadline and cancellation."""
        return container_id(self.principal.organization_id, self.definition, self.run_id)
