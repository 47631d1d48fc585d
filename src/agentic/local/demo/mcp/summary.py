"""What came of the story, as one value: whether it ended as promised, and the JSON line."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from agentic.local.demo.summary import Told, provider_error

TOOLS = 3


@dataclass(frozen=True, kw_only=True, slots=True)
class McpSummary(Told):
    """The end of one telling.

    Attributes:
        server: its name.
        tools: how many of it are approved.
        notes: that were written since the demo began, whoever asked for them.
        fenced: what the server said to the model stood where a stranger's data stands.
        cost: of the whole run, as a decimal.
        emails: that the run sent.
        killed: a worker was killed after the note and before its answer.
    """

    model: str
    server: str
    tools: int
    notes: int
    fenced: bool
    approvals: int
    rejected: bool
    uncertain: int
    cost: str
    emails: int
    error_code: str | None
    model_error: str | None
    killed: bool
    seconds: float


def summary(
    tree: Mapping[str, Any],
    *,
    model: str,
    server: str,
    tools: int,
    notes: int,
    fenced: bool,
    emails: int,
    killed: bool,
    seconds: float,
) -> McpSummary:
    """Count the tree and the notebook."""
    run = tree["run"]
    return McpSummary(
        run_id=str(run["id"]),
        status=str(run["state"]),
        model=model,
        server=server,
        tools=tools,
        notes=notes,
        fenced=fenced,
        approvals=len(tree["approvals"]),
        rejected=any(approval.get("status") == "rejected" for approval in tree["approvals"]),
        uncertain=len(tree["uncertain"]),
        cost=str(tree["cost"]["cost"]),
        emails=emails,
        error_code=run["error_code"],
        model_error=provider_error(tree),
        killed=killed,
        seconds=round(seconds, 2),
    )


def broken_promise(end: McpSummary, *, crash: bool) -> str | None:
    """What did not come out as the demo promises; ``None`` when all of it did.

    Args:
        crash: a worker was to be killed.
    """
    if end.status != "succeeded":
        code = f" ({end.error_code})" if end.error_code else ""
        reason = f", because the model provider said: {end.model_error}" if end.model_error else ""
        return f"the run ended {end.status}{code}{reason}"
    if end.emails:
        return f"{end.emails} emails were sent by a run that may send none"
    if end.tools != TOOLS:
        return f"{end.tools} tools are approved instead of {TOOLS}"
    if not end.fenced:
        return "what the guest book told the model to do was not read, or not labelled as a stranger's"
    if end.rejected and end.notes == 0:
        return "an outcome is unknown, though the call was rejected" if end.uncertain else None
    if end.notes != 1:
        return f"{end.notes} notes were written instead of 1"
    if crash and not end.killed:
        return "no worker died between the note and its answer"
    if crash:
        return None if end.uncertain == 1 else "the unknown outcome did not reach the operator's queue"
    return "an outcome is unknown, though the server answered" if end.uncertain else None
