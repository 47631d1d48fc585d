"""Steps 2 to 5 of a call: what the preflight says about it. Pure; each raises what ends the call, or hands on what the next step needs."""

from typing import assert_never

from pydantic import BaseModel

from agentic.contract.errors import LeaseLost, RunEnded
from agentic.contract.principal import Role
from agentic.contract.results import ErrorCode, Said
from agentic.services.tools.attempt import Prepared, Refused
from agentic.services.tools.calls import ToolInvocation
from agentic.services.tools.declarations import Tool
from agentic.services.tools.ports import CoveringApproval, Preflight
from agentic.services.tools.result_boundary import said_text


def run_is_ours(call: Prepared, pre: Preflight) -> None:
    """Refuse to go on for a run that another worker leads, or that is being cancelled."""
    run_id = call.at.inv.run_id
    if pre.fence != call.at.inv.fence or not pre.lease_live:
        raise LeaseLost(f"run {run_id} is led by another worker")
    if pre.cancelled:
        raise RunEnded(status="cancelled", code="cancelled", message=f"run {run_id} is being cancelled")


def within_ceilings(call: Prepared, pre: Preflight) -> None:
    """End the run that has made all its calls."""
    bound = pre.ceilings.max_tool_calls
    if bound is not None and pre.tool_calls + call.at.inv.trail.tool_calls >= bound:
        run_id = call.at.inv.run_id
        raise RunEnded(
            status="succeeded", code="limit_reached", message=f"run {run_id} has made its {bound} tool calls"
        )


def live(call: Prepared, pre: Preflight) -> tuple[Tool, BaseModel]:
    """The tool as it is now, and its view of the arguments; refused when it is away or another one."""
    if call.tool is None or not pre.tool_enabled:
        raise Refused(ErrorCode.TOOL_UNAVAILABLE)
    if call.tool.spec.contract_hash != call.spec.contract_hash or call.model is None:
        raise Refused(ErrorCode.TOOL_CHANGED)
    return call.tool, call.model


def approved(approval: CoveringApproval | None) -> CoveringApproval | None:
    """The approval this call runs under; one whose decider has lost the authority counts for nothing."""
    if approval is None:
        return None
    match approval.status:
        case "rejected":
            raise Refused(
                ErrorCode.REJECTED,
                said=Said(by="reviewer", text=said_text(approval.comment, ())) if approval.comment else None,
            )
        case "expired":
            raise Refused(ErrorCode.EXPIRED)
        case "approved":
            role = approval.decider_role
            return approval if role is not None and role.holds(Role.APPROVER) else None
        case "pending" | "cancelled":
            return None
        case _ as never:
            assert_never(never)


def own_approval(approval: CoveringApproval | None, inv: ToolInvocation) -> bool:
    """Whether the person the run acts for gave the approval."""
    return approval is not None and approval.decided_by is not None and approval.decided_by == inv.principal.user_id
