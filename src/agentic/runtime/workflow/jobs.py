"""The wait for work that a provider finishes later. The job's row is the truth, and its event shortens the wait."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from agentic.contract.events import EventName
from agentic.runtime.workflow.context import WorkflowContext
from agentic.runtime.workflow.declaration import checked_node
from agentic.runtime.workflow.errors import NodeFailed
from agentic.runtime.workflow.slices import Look
from agentic.runtime.workflow.waiting import wait
from agentic.services.provider_jobs.models import JobState


@dataclass(frozen=True, kw_only=True, slots=True)
class JobSeen:
    """How a job stood when the wait for it ended. Its answer is read by a tool, under that tool's rules."""

    id: UUID
    provider: str
    state: JobState

    @property
    def ended(self) -> bool:
        """Whether the provider is done; ``False`` when the time was over first."""
        return self.state.terminal


async def wait_for_job(ctx: WorkflowContext, wait_id: str, job_id: UUID | str, timeout: timedelta) -> JobSeen:  # noqa: ASYNC109 - of a durable wait
    """Wait until a provider's job has ended, or until the time is over.

    Args:
        wait_id: unique within the function, as a node's id.
        job_id: our id of the job, as the tool that submitted it answered.
        timeout: from the first look on, by the database's clock.

    Raises:
        NodeFailed: ``not_found``, when the organization has no such job, or the id is none; ``cancelled`` or ``deadline``, when the
            workflow is over.
        ProgramFault: the wait's id cannot be used.
    """
    checked_node(wait_id)
    try:
        job = UUID(str(job_id))
    except ValueError as error:
        raise NodeFailed(wait_id, "not_found", "what it waits for is no id of a job") from error

    async def look(first: Look | None) -> Look:
        return await _look(ctx, job, timeout, None if first is None else datetime.fromisoformat(first.seen["now"]))

    found = await wait(
        ctx,
        wait_id,
        look,
        event=EventName.PROVIDER_JOB_COMPLETED,
        matches=f"async.data.job_id == '{job}'",
    )
    if "ended" in found.seen:
        raise NodeFailed(wait_id, found.seen["ended"], "the workflow is over; nothing is waited for")
    if "state" not in found.seen:
        raise NodeFailed(wait_id, "not_found", f"there is no job {job} in this organization")
    return JobSeen(id=job, provider=found.seen["provider"], state=JobState(found.seen["state"]))


async def _look(ctx: WorkflowContext, job_id: UUID, within: timedelta, began: datetime | None) -> Look:
    ended = await ctx.leader.ended(ctx.flow)
    if ended is not None:
        return Look(over=True, within_s=0, seen={"ended": ended})
    job = await ctx.jobs.read(ctx.flow.principal.organization_id, job_id)
    if job is None:
        return Look(over=True, within_s=0)
    left_s = (within - (job.now - (began or job.now))).total_seconds()
    seen = {"state": str(job.state), "provider": job.provider, "now": job.now.isoformat()}
    return Look(over=job.state.terminal or left_s <= 0, within_s=left_s, seen=seen)
