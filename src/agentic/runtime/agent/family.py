"""What a run may have that another run starts: never more than its parent (ADR 0032). Pure."""

from agentic.contract.errors import NotPermitted, ParentRefuses
from agentic.contract.principal import Principal
from agentic.runtime.agent.definition import AgentDefinition
from agentic.services.runs.models import MAX_DEPTH, Parent


def check_parent(parent: Parent, principal: Principal) -> None:
    """Refuse a child before anything of it exists. The insert asks the row again, under its lock.

    Raises:
        ParentRefuses: the parent is being cancelled, is over, or is as deep as a run may be.
        NotPermitted: the child would act for somebody else than the parent.
    """
    if parent.cancelled:
        raise ParentRefuses(run_id=parent.run_id, code="parent_cancelled")
    if parent.overdue or parent.state in ("succeeded", "failed", "cancelled"):
        raise ParentRefuses(run_id=parent.run_id, code="parent_over")
    if parent.depth >= MAX_DEPTH:
        raise ParentRefuses(run_id=parent.run_id, code="too_deep")
    if parent.user_id != principal.user_id:
        raise NotPermitted(f"run {parent.run_id} acts for another person; a run it starts acts for the same one")


def inherited(definition: AgentDefinition, parent: Parent) -> AgentDefinition:
    """The definition with the tools that the parent has too; a parent without tools leaves none to anybody below it."""
    return definition.model_copy(update={"tools": tuple(tool for tool in definition.tools if tool in parent.tools)})
