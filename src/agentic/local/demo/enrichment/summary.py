"""What came of the story, as one value: whether it ended as promised, and the JSON line."""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from agentic.local.demo.summary import Told, provider_error
from agentic.services.provider_jobs.models import JobState

if TYPE_CHECKING:
    from agentic.local.demo.enrichment.vendor import (
        Booked,
    )  # imports the platform, which is in the way of a quick start


@dataclass(frozen=True, kw_only=True, slots=True)
class EnrichmentSummary(Told):
    """The end of one telling.

    Attributes:
        jobs: how many the run submitted.
        job_state: of the last one; ``None`` when there is none.
        callbacks: reports that the webhook route took, repeated ones too.
        found: addresses that the provider reported.
        usage_lines: lines of usage that are a job's.
        job_cost: what they come to, as a decimal.
        cost: of the whole run, the model's requests too.
        emails: that the run sent.
        parked: the run waited for its job, while no worker ran.
    """

    model: str
    jobs: int
    job_state: str | None
    callbacks: int
    found: int
    usage_lines: int
    job_cost: str
    cost: str
    emails: int
    approvals: int
    rejected: bool
    uncertain: int
    parked: bool
    error_code: str | None
    model_error: str | None
    seconds: float


def summary(
    tree: Mapping[str, Any],
    booked: "Booked",
    *,
    model: str,
    emails: int,
    callbacks: int,
    found: int,
    parked: bool,
    seconds: float,
) -> EnrichmentSummary:
    """Count the tree, the jobs and their usage."""
    run = tree["run"]
    return EnrichmentSummary(
        run_id=str(run["id"]),
        status=str(run["state"]),
        model=model,
        jobs=len(booked.jobs),
        job_state=str(booked.jobs[-1].state) if booked.jobs else None,
        callbacks=callbacks,
        found=found,
        usage_lines=len(booked.lines),
        job_cost=str(sum((line.cost or Decimal(0) for line in booked.lines), Decimal(0))),
        cost=str(tree["cost"]["cost"]),
        emails=emails,
        approvals=len(tree["approvals"]),
        rejected=any(approval.get("status") == "rejected" for approval in tree["approvals"]),
        uncertain=len(tree["uncertain"]),
        parked=parked,
        error_code=run["error_code"],
        model_error=provider_error(tree),
        seconds=round(seconds, 2),
    )


def broken_promise(end: EnrichmentSummary) -> str | None:
    """What did not come out as the demo promises; ``None`` when all of it did."""
    if end.status != "succeeded":
        code = f" ({end.error_code})" if end.error_code else ""
        reason = f", because the model provider said: {end.model_error}" if end.model_error else ""
        return f"the run ended {end.status}{code}{reason}"
    if end.emails:
        return f"{end.emails} emails were sent by a run that may send none"
    if end.uncertain:
        return "an outcome is unknown, though it could be found out"
    if end.rejected and end.jobs == 0:
        return "the run has usage of a job that was never submitted" if end.usage_lines else None
    if end.jobs != 1:
        return f"{end.jobs} jobs were submitted instead of 1"
    if not end.parked:
        return "the run did not wait for its job"
    if end.job_state != JobState.COMPLETED:
        return f"the job is {end.job_state} instead of {JobState.COMPLETED}"
    if end.callbacks < 2:
        return "the webhook route did not take every callback"
    if end.usage_lines != 1:
        return f"the job was paid {end.usage_lines} times instead of once"
    return None
