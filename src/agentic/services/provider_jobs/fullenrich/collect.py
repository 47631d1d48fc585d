"""``fullenrich.collect``: how a job stands, and one compact line for each contact that was asked for. Reads the job's row alone."""

from typing import Literal
from uuid import UUID

from pydantic import BaseModel

from agentic.contract.results import ErrorCode
from agentic.services.provider_jobs.fullenrich.projection import ContactResult, Projection, projected
from agentic.services.provider_jobs.models import JobState
from agentic.services.provider_jobs.ports import SubmittedJobs
from agentic.services.tools.context import CallContext
from agentic.services.tools.declarations import Tool, vendor_tool

NAME = "fullenrich.collect"
PROVIDER = "fullenrich"


class NoSuchJob(Exception):
    """This organization has no such job."""


class JobRef(BaseModel):
    """Arguments of ``fullenrich.collect``."""

    job_id: UUID


class Collected(BaseModel):
    """How a job stands. A job that runs has no results yet; one that failed or was cancelled may have some."""

    job_id: UUID
    state: Literal["running", "completed", "failed", "cancelled"]
    accepted: bool
    """Whether the provider ever confirmed it."""
    results: list[ContactResult]
    unknown_rows: int
    """Rows of the provider that belong to no contact that was asked for."""
    malformed_rows: int


def collect_tool(jobs: SubmittedJobs, *, wait_s: float) -> Tool:
    """The tool.

    Args:
        wait_s: seconds that a run is parked on a job at most.
    """

    @vendor_tool(
        NAME,
        "Read what a fullenrich.submit job found. While state is running there is nothing to read yet.",
        refusals={NoSuchJob: ErrorCode.NOT_FOUND},
        parallel_safe=False,  # so that a call is paused, where its run can park
    )
    async def handler(ctx: CallContext, args: JobRef) -> Collected:
        job = await jobs.read(ctx.organization_id, args.job_id)
        if job is None or job.provider != PROVIDER:
            raise NoSuchJob("there is no such job")
        if not job.state.terminal and job.parked_at is None:
            ctx.waits_for_job(job.id, within_s=wait_s)
        found = projected(await jobs.result_of(job), job.contact_refs or ()) if job.state.terminal else Projection()
        return Collected(
            job_id=job.id,
            state="running" if not job.state.terminal else _ended(job.state),
            accepted=job.provider_job_id is not None,
            results=list(found.results),
            unknown_rows=found.unknown_rows,
            malformed_rows=found.malformed_rows,
        )

    return handler


def _ended(state: JobState) -> Literal["completed", "failed", "cancelled"]:
    if state is JobState.COMPLETED:
        return "completed"
    return "failed" if state is JobState.FAILED else "cancelled"
