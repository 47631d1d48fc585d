"""``fullenrich.submit``: a batch is reserved as a job, sent once, and answered with our id of it.

If the process dies before the request leaves, the job stays reserved and nobody sends it; after it, the callback says what became of
it. Either way nothing is sent twice: whoever did not reserve the job gets the same one, whatever became of its request.
"""

import logging
from typing import Annotated, Any
from uuid import UUID

from pydantic import BaseModel, Field, model_validator

from agentic.contract.errors import Conflict, ProgramFault
from agentic.services.provider_jobs.fullenrich import client
from agentic.services.provider_jobs.fullenrich.account import FullEnrichAccount
from agentic.services.provider_jobs.models import ProviderJob, SubmittingCall, job_name
from agentic.services.provider_jobs.ports import SubmittedJobs
from agentic.services.tools.context import CallContext
from agentic.services.tools.declarations import Tool, vendor_tool
from agentic.services.tools.handlers.errors import HandlerError
from agentic.services.tools.models import Watermark

NAME = "fullenrich.submit"
PROVIDER = "fullenrich"
MAX_CONTACTS = 25
_LABEL = "[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
_log = logging.getLogger(__name__)

Name = Annotated[str, Field(min_length=1, max_length=120)]


class Contact(BaseModel):
    """One person, with at least one of domain, company_name and linkedin_url."""

    ref: str = Field(
        min_length=1,
        max_length=64,
        pattern=r"^[^\x00-\x1f\x7f]+$",
        description="Your own mark of this person; no two share one.",
    )
    first_name: Name
    last_name: Name
    domain: str | None = Field(default=None, max_length=253, pattern=rf"^{_LABEL}(\.{_LABEL})+\.?$")
    company_name: str | None = Field(default=None, min_length=1, max_length=200)
    linkedin_url: str | None = Field(
        default=None, max_length=512, pattern=r"^https?://([a-z0-9-]+\.)?linkedin\.com/\S+$"
    )

    @model_validator(mode="after")
    def _found_by_something(self) -> "Contact":
        if self.domain is None and self.company_name is None and self.linkedin_url is None:
            raise ValueError("give a domain, a company_name or a linkedin_url")
        return self

    def row(self) -> dict[str, Any]:
        """As the provider takes it: the work address alone is asked for."""
        found_by = {
            "domain": None if self.domain is None else self.domain.lower().removesuffix("."),
            "company_name": self.company_name,
            "linkedin_url": self.linkedin_url,
        }
        return {
            "first_name": self.first_name,
            "last_name": self.last_name,
            **{name: value for name, value in found_by.items() if value is not None},
            "enrich_fields": ["contact.work_emails"],
            "custom": {"ref": self.ref},
        }


class Batch(BaseModel):
    """Arguments of ``fullenrich.submit``."""

    contacts: list[Contact] = Field(min_length=1, max_length=MAX_CONTACTS)

    @model_validator(mode="after")
    def _refs_differ(self) -> "Batch":
        refs = [contact.ref for contact in self.contacts]
        if len(set(refs)) != len(refs):
            raise ValueError("every contact has a ref of its own")
        return self


class Submitted(BaseModel):
    """The job, to wait for and to collect."""

    job_id: UUID
    accepted: bool
    """Whether the provider has confirmed it; when not, its callback may still."""


def submit_tool(account: FullEnrichAccount, jobs: SubmittedJobs) -> Tool:
    """The tool over an account."""

    async def probe(ctx: CallContext, _args: Any) -> Submitted | None:
        job = await jobs.submitted_by(_call(ctx))
        return None if job is None else _submitted(ctx, job)

    @vendor_tool(
        NAME,
        "Look up the work email addresses of up to 25 people. It takes minutes: the answer is a job_id, to wait for and then to read with "
        "fullenrich.collect.",
        side_effects="write",
        repeatable=False,
        watermark=Watermark.AT_TRANSPORT,
        metered=True,
        cost_bound=account.credit * MAX_CONTACTS,
        timeout_s=30,
        probe=probe,
    )
    async def handler(ctx: CallContext, args: Batch) -> Submitted:
        ctx.secrets = (*ctx.secrets, account.key)
        refs = [contact.ref for contact in args.contacts]
        reserved = await jobs.reserve(_call(ctx), provider=PROVIDER, contact_refs=refs)
        if not reserved.first:
            return _submitted(ctx, reserved.job)
        job = reserved.job
        body = {
            "name": job_name(job.id),
            "webhook_url": account.callback_url(job.id),
            "data": [contact.row() for contact in args.contacts],
        }
        try:
            provider_job_id = await client.submit(
                account, body, before_first_byte=ctx.before_first_byte, deadline=ctx.deadline, clock=ctx.clock
            )
        except HandlerError as error:
            await jobs.note(ctx.organization_id, job.id, str(error))
            raise
        return _submitted(ctx, await _bound(jobs, job, provider_job_id))

    return handler


async def _bound(jobs: SubmittedJobs, job: ProviderJob, provider_job_id: str) -> ProviderJob:
    """The job with the provider's id, which a callback may have named first."""
    try:
        await jobs.bind(job.organization_id, job.id, provider_job_id)
    except Conflict:
        _log.error("fullenrich gave job %s the id of another one; a callback must say which it has", job.id)
    known = await jobs.read(job.organization_id, job.id)
    return known if known is not None else job


def _submitted(ctx: CallContext, job: ProviderJob) -> Submitted:
    ctx.costs_with_job()
    return Submitted(job_id=job.id, accepted=job.provider_job_id is not None)


def _call(ctx: CallContext) -> SubmittingCall:
    if ctx.epoch is None:
        raise ProgramFault(f"{ctx.tool} submits a job and was not claimed")
    return SubmittingCall(
        organization_id=ctx.organization_id, run_id=ctx.run_id, tool=ctx.tool, epoch=ctx.epoch, attempt=ctx.attempt
    )
