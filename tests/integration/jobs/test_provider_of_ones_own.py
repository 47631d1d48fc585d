"""A product's own provider, signed as Standard Webhooks says, with two secrets valid: the vectors were made by another program."""

import time
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest

from agentic.contract.deliveries import Unreadable
from agentic.contract.signatures import StandardWebhooks
from agentic.services.provider_jobs.models import JobCost, JobReport, JobState, NewJob
from agentic.services.provider_jobs.ports import SubmittedJobs
from agentic.services.tools.declarations import Tool
from core_world import execute
from jobs_stage import jobs_stage

NEWER, EARLIER = (
    "whsec_qqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqo=",
    "whsec_w8PDw8PDw8PDw8PDw8PDw8PDw8PDw8PDw8PDw8PDw8M=",
)
AT = 1893456000
JOB = UUID("00000000-0000-4000-8000-000000000007")
BODY = (
    b'{"type":"survey.ended","data":{"id":"sv-7","label":"agentic:00000000-0000-4000-8000-000000000007","cents":125}}'
)
BY_NEWER, BY_EARLIER = (
    "v1,Qe03yVlj4Dz2OP3GrnEONJzEajFbDcNdXfnHr/WeiqI=",
    "v1,Cc+4V8ytwPsnJ0x1mkF8v1cEr3BITx3PRx/34xo3c40=",
)


class Surveys:
    """A provider as a product writes one."""

    name = "surveys"
    window_s = 1800.0
    ask_every_s = 600.0

    def __init__(self, *secrets: str, now_s: Callable[[], float] = time.time) -> None:
        self._webhooks = StandardWebhooks(secrets)
        self._now_s = now_s

    def verify(self, raw_body: bytes, headers: Mapping[str, str]) -> bool:
        return self._webhooks.verify(raw_body, headers, now_s=self._now_s())

    def read(self, payload: Mapping[str, Any]) -> JobReport:
        data = payload.get("data")
        if payload.get("type") != "survey.ended" or not isinstance(data, dict):
            raise Unreadable("this is no end of a survey")
        cost = JobCost(quantity=Decimal(data["cents"]) / 100, unit="dollar")
        return JobReport(
            provider_job_id=data["id"],
            name=data["label"],
            state=JobState.COMPLETED,
            result=data,
            cost=cost,
            delivery_id=f"{data['id']}:ended",
        )

    async def ask(self, provider_job_id: str) -> JobReport | None:
        return None

    def tools(self, jobs: SubmittedJobs) -> Sequence[Tool]:
        return []


def signed(signature: str, *, at: int = AT) -> dict[str, str]:
    return {"webhook-id": "msg_own_0007", "webhook-timestamp": str(at), "webhook-signature": signature}


@pytest.mark.guarantee("T3")
@pytest.mark.parametrize("signature", [BY_NEWER, BY_EARLIER, f"{BY_EARLIER} {BY_NEWER}"])
async def test_a_report_under_either_secret_ends_the_job_and_no_other_report_does(
    database: str, signature: str
) -> None:
    provider = Surveys(NEWER, EARLIER, now_s=lambda: AT + 60.0)
    async with jobs_stage(database, providers=[provider]) as s:
        run = (await s.job(held=None)).run_id
        job = NewJob(id=JOB, organization_id=s.h.organization_id, run_id=run, provider="surveys")
        await s.h.platform.jobs.submit(job)
        for wrong in (
            signed(signature.replace("v1,", "v2,")),
            signed(signature, at=AT + 1),
            signed("v1,"),
            signed("no comma"),
            {},
        ):
            assert await s.post(JOB, BODY, headers=wrong, to="surveys") == 401
        assert await s.post(JOB, BODY.replace(b"125", b"999"), headers=signed(signature), to="surveys") == 401
        assert (await s.read(JOB)).state is JobState.SUBMITTED
        assert [await s.post(JOB, BODY, headers=signed(signature), to="surveys") for _ in range(2)] == [200, 200]
        row = await s.read(JOB)
        assert (row.state, row.provider_job_id, row.cost) == (
            JobState.COMPLETED,
            "sv-7",
            {"quantity": "1.25", "unit": "dollar"},
        )
        assert await s.drops() == {"bad_signature": 6, "duplicate": 1}


async def test_a_secret_that_was_taken_out_is_believed_no_more_and_a_delivery_of_long_ago_neither(
    database: str,
) -> None:
    async with jobs_stage(database, providers=[Surveys(NEWER, now_s=lambda: AT + 60.0)]) as s:
        assert await s.post(JOB, BODY, headers=signed(BY_EARLIER), to="surveys") == 401
        assert await s.post(JOB, BODY, headers=signed(BY_NEWER), to="surveys") == 200
        await execute(s.h, "delete from agent.webhook_drops")
    async with jobs_stage(database, providers=[Surveys(NEWER, now_s=lambda: AT + 301.0)], priced=False) as s:
        assert await s.post(JOB, BODY, headers=signed(BY_NEWER), to="surveys") == 401
        assert await s.drops() == {"bad_signature": 1}
