"""Jobs of FullEnrich over its stand-in: a deployment, its API, and a scripted agent that submits and collects."""

import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from decimal import Decimal
from typing import Any
from uuid import UUID, uuid4

import httpx

from agentic.api.app import create_api
from agentic.api.auth import JwtAuthenticator
from agentic.api.webhooks import FailureLimits
from agentic.bootstrap import api_ports
from agentic.contract.principal import RunCeilings
from agentic.local.providers.fullenrich import Batch, FullEnrichStandIn
from agentic.local.providers.stand_in import StandInServer
from agentic.runtime.agent.script import Turn
from agentic.services.provider_jobs.fullenrich import FullEnrich, FullEnrichAccount
from agentic.services.provider_jobs.models import NewJob, ProviderJob
from agentic.services.provider_jobs.ports import JobProvider
from agentic.testing import Call, Calls, Harness, Say, harness
from core_world import execute, rows
from money import FREE, set_price

KEY, EARLIER_KEY = "fullenrich-key-of-nobody", "fullenrich-key-of-before"
HOOKS = "/api/v1/agentic/webhooks"
IDA = {"ref": "a", "first_name": "Ida", "last_name": "Holm", "domain": "Nordlys.Example"}
PER = {"ref": "b", "first_name": "Per", "last_name": "Lie", "company_name": "Fjord"}
SUBMIT = Calls([Call("fullenrich.submit", {"contacts": [IDA, PER]})])
SCRIPT: Sequence[Turn] = (SUBMIT, Say("Done."))
CREDIT = Decimal("0.05")


@dataclass(kw_only=True)
class JobsStage:
    """The stage."""

    h: Harness
    vendor: FullEnrichStandIn
    vendor_url: str
    http: httpx.AsyncClient

    async def job(
        self, *, vendor_id: str | None = None, held: str | None = "2.50", refs: Sequence[str] = ("a",)
    ) -> NewJob:
        """A reserved job of a run of its own, without a call."""
        job = NewJob(
            id=uuid4(),
            organization_id=self.h.organization_id,
            run_id=uuid4(),
            provider="fullenrich",
            contact_refs=refs,
        )
        await execute(
            self.h,
            "insert into agent.runs (id, organization_id, request_key, request_digest, root_run_id, definition_name, definition) "
            "values (%(id)s, %(organization)s, %(id)s::text, 'd', %(id)s, 'a', '{}')",
            id=job.run_id,
            organization=job.organization_id,
        )
        await self.h.platform.jobs.submit(job)
        if vendor_id is not None:
            await self.h.platform.jobs.bind(job.organization_id, job.id, vendor_id)
        if held is not None:
            await execute(
                self.h,
                "insert into agent.usage_reservations (organization_id, root_run_id, run_id, owner, owner_ref, amount, tool) "
                "values (%(organization)s, %(run)s, %(run)s, 'job', %(job)s::text, %(amount)s, 'fullenrich.submit')",
                organization=job.organization_id,
                run=job.run_id,
                job=str(job.id),
                amount=Decimal(held),
            )
        return job

    async def read(self, job_id: UUID) -> ProviderJob:
        """The job's row."""
        found = await self.h.platform.jobs.read(self.h.organization_id, job_id)
        assert found is not None
        return found

    async def post(
        self,
        job_id: UUID | str,
        body: bytes,
        *,
        key: str = KEY,
        headers: Mapping[str, str] | None = None,
        to: str = "fullenrich",
    ) -> int:
        """Deliver a body, signed unless the headers are given; the status."""
        sent = self.vendor.signed(body, key=key) if headers is None else headers
        return (await self.http.post(f"{HOOKS}/{to}/{job_id}", content=body, headers=dict(sent))).status_code

    async def deliver(self, batch: Batch) -> int:
        """Deliver a batch's report to the address it was submitted with."""
        body = batch.body()
        assert batch.webhook_url is not None
        return (await self.http.post(batch.webhook_url, content=body, headers=self.vendor.signed(body))).status_code

    async def settle_all(self) -> None:
        """What the durable function does of every event sent so far."""
        events, self.h.bus.events[:] = list(self.h.bus.events), []
        for event in events:
            if event.job_id is not None:
                await self.h.platform.settling.settle(event.organization_id, event.job_id)

    async def drops(self) -> dict[str, int]:
        """Deliveries that changed nothing, by reason."""
        return {
            row["reason"]: row["drops"] for row in await rows(self.h, "select reason, drops from agent.webhook_drops")
        }

    async def lines(self) -> list[dict[str, Any]]:
        """Every line of usage that is no model's."""
        return await rows(self.h, "select * from agent.ai_usage_log where kind <> 'model' order by at, id")

    async def holds(self) -> list[tuple[str, str]]:
        """Owner and state of everything that was held."""
        found = await rows(self.h, "select owner, state from agent.usage_reservations order by created_at, id")
        return [(row["owner"], row["state"]) for row in found]

    async def submitted(self, *, approve: bool = True) -> tuple[UUID, dict[str, Any]]:
        """A run that submits, approved and led as far as it goes by itself; what the tool answered."""
        run_id = await self.h.start()
        await self.h.settle(run_id)
        if approve:
            await self.h.decide(run_id)
            await self.h.settle(run_id)
        return run_id, await self.told(run_id)

    async def told(self, run_id: UUID, call: int = 0) -> dict[str, Any]:
        """The data that a call answered, or the refusal."""
        text = [text for role, text in await self.h.messages(run_id) if role == "tool"][call]
        body = json.loads(text.splitlines()[0])
        if body.get("ok") is True:
            data: dict[str, Any] = body["external"]["data"]
            return data
        assert isinstance(body, dict)
        return body


def body(vendor_id: str, job_id: UUID | str, status: str = "FINISHED", *, credits_: Any = 1, **more: Any) -> bytes:
    """A report of a batch, in an order and with blanks that no serializer makes."""
    told = {
        "status": status,
        "data": [],
        "cost": {"credits": credits_},
        "name": f"agentic:{job_id}",
        "id": vendor_id,
        **more,
    }
    return json.dumps(told, indent=1).encode() + b" \n"


@asynccontextmanager
async def jobs_stage(
    database: str,
    *,
    script: Sequence[Turn] | Callable[[], object] = SCRIPT,
    ceilings: RunCeilings | None = None,
    failures: FailureLimits | None = None,
    priced: bool = True,
    window_s: float = 1800,
    providers: Sequence[JobProvider] = (),
) -> AsyncIterator[JobsStage]:
    """The stage, on a database of its own."""
    vendor = FullEnrichStandIn(KEY)
    async with StandInServer(vendor) as server:
        account = FullEnrichAccount(
            key=KEY,
            earlier_keys=(EARLIER_KEY,),
            callback_origin="https://api.shop.example",
            origin=server.url,
            window_s=window_s,
        )
        async with harness(
            tools=[],
            script=script,
            database_url=database,
            providers=[FullEnrich(account), *providers],
            ceilings=ceilings,
            usage=FREE,
        ) as h:
            if priced:
                await set_price(h, str(CREDIT), provider="fullenrich")
            api = create_api(
                api_ports(h.platform), JwtAuthenticator("a secret that only tests know, long enough"), failures=failures
            )
            transport = httpx.ASGITransport(api)
            async with httpx.AsyncClient(transport=transport, base_url="https://api.shop.example") as http:
                yield JobsStage(h=h, vendor=vendor, vendor_url=server.url, http=http)
