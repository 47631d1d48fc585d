"""Hundreds of callbacks at once, over sockets, at two servers of one database: nothing is lost, and each job is paid once (W2, M1, T3)."""

import asyncio
import random
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from uuid import uuid4

import httpx
import pytest

from agentic.api.app import create_api
from agentic.api.auth import JwtAuthenticator
from agentic.api.webhooks import FailureLimits
from agentic.bootstrap import App, Platform, api_ports, open_platform
from agentic.local.providers.loopback_server import LoopbackServer
from agentic.services.provider_jobs.fullenrich import FullEnrich, FullEnrichAccount
from agentic.services.provider_jobs.models import JobState, NewJob
from core_world import rows
from jobs_stage import CREDIT, HOOKS, KEY, JobsStage, body, jobs_stage

JOBS = 150
CONTRADICTED = JOBS // 5
SENDERS = 24
PROVIDER_ADDRESS, FORGER_ADDRESS = "127.0.0.1", "127.0.0.2"
BURST = FailureLimits(per_minute=0)


@dataclass(frozen=True, kw_only=True)
class Delivery:
    """One request; ``signed`` says by whom."""

    job: str
    raw: bytes
    signed: bool = True


def reports(job: NewJob, number: int) -> list[Delivery]:
    """What a provider may send of one job, two of every three times more than once; its order is nobody's promise."""
    vendor, to = f"v-{job.id}", str(job.id)
    finished = Delivery(job=to, raw=body(vendor, to, credits_=2))
    sent = [Delivery(job=to, raw=body(vendor, to, "IN_PROGRESS", credits_=0)), *[finished] * (1 + number % 3)]
    if number % 5 == 0:
        sent.append(Delivery(job=to, raw=body(vendor, to, "CANCELED", credits_=0)))  # and which came first counts
    return sent


def strays(jobs: Sequence[NewJob]) -> list[Delivery]:
    """Signed, and nothing to the job in the address: an unknown one, another one's report, a name of its own."""
    known, other = str(jobs[0].id), str(jobs[1].id)
    return [
        *(Delivery(job=str(uuid4()), raw=body("v-nobody", known)) for _ in range(10)),
        *(Delivery(job=known, raw=body(f"v-{other}", other)) for _ in range(10)),
        *(Delivery(job=known, raw=body("v-else", known, name="a list of ours")) for _ in range(10)),
    ]


def forgeries(jobs: Sequence[NewJob]) -> list[Delivery]:
    """What would end every job at no cost, were it believed."""
    return [
        Delivery(job=str(job.id), raw=body(f"v-{job.id}", job.id, "CANCELED", credits_=0), signed=False) for job in jobs
    ]


@asynccontextmanager
async def two_servers(s: JobsStage, database: str) -> AsyncIterator[list[str]]:
    """Addresses of the stage's own platform and of another process's, as far as the database can tell."""
    provider = FullEnrich(FullEnrichAccount(key=KEY, callback_origin="https://api.shop.example"))
    async with AsyncExitStack() as stack:
        second = await stack.enter_async_context(open_platform(App(providers=[provider]), database, bus=s.h.bus))
        urls = []
        for platform in (s.h.platform, second):
            server = LoopbackServer(_api(platform), name="api")
            urls.append((await stack.enter_async_context(server)).url)
        yield urls


def _api(platform: Platform) -> object:
    authenticator = JwtAuthenticator("a secret that only tests know, long enough")
    return create_api(api_ports(platform), authenticator, failures=BURST)


async def send_all(
    s: JobsStage, urls: Sequence[str], deliveries: Sequence[Delivery], *, address: str, senders: int
) -> Counter[int]:
    """Send them over kept connections from one address, taking turns at the servers; how they were answered."""
    answers: Counter[int] = Counter()
    left = iter(enumerate(deliveries))

    async def sender(http: httpx.AsyncClient, left: Iterator[tuple[int, Delivery]]) -> None:
        for number, delivery in left:
            headers = s.vendor.signed(delivery.raw, key=KEY if delivery.signed else "somebody-else")
            url = f"{urls[number % len(urls)]}{HOOKS}/fullenrich/{delivery.job}"
            answers[(await http.post(url, content=delivery.raw, headers=headers)).status_code] += 1

    transport = httpx.AsyncHTTPTransport(local_address=address)
    async with httpx.AsyncClient(transport=transport, timeout=30) as http:
        await asyncio.gather(*(sender(http, left) for _ in range(senders)))
    return answers


@pytest.mark.timeout(240)  # a thousand requests, on a machine that may be busy
@pytest.mark.guarantee("W2", "M1", "T3")
async def test_of_hundreds_of_callbacks_at_once_none_is_lost_each_job_is_paid_once_and_the_rest_is_counted(
    database: str,
) -> None:
    async with jobs_stage(database) as s, two_servers(s, database) as urls:
        jobs = [await s.job() for _ in range(JOBS)]
        believed = [delivery for number, job in enumerate(jobs) for delivery in reports(job, number)] + strays(jobs)
        random.Random(7).shuffle(believed)
        forged = forgeries(jobs)

        taken, refused = await asyncio.gather(
            send_all(s, urls, believed, address=PROVIDER_ADDRESS, senders=SENDERS),
            send_all(s, urls, forged, address=FORGER_ADDRESS, senders=4),
        )

        assert taken == {200: len(believed)}, "who signs is never slowed down by who does not"
        assert refused.keys() == {401, 429}
        ends = {job.id: await s.read(job.id) for job in jobs}
        assert all(end.state is JobState.COMPLETED for number, end in enumerate(ends.values()) if number % 5)
        assert {end.state for end in ends.values()} <= {JobState.COMPLETED, JobState.CANCELLED}

        drops = await s.drops()
        assert drops["bad_signature"] == refused[401] >= BURST.burst * len(urls)
        assert (drops["unknown_job"], drops["job_mismatch"]) == (10, 20)
        assert sum(drops.values()) - refused[401] == len(believed) - JOBS, "all but one of each job changed nothing"

        events = list(s.h.bus.events)
        assert sorted(str(event.job_id) for event in events) == sorted(str(job.id) for job in jobs)
        settling = s.h.platform.settling
        await asyncio.gather(*(settling.settle(s.h.organization_id, job.id) for job in [*jobs, *jobs]))
        lines = await s.lines()
        assert {line["id"] for line in lines} == {(await s.read(job.id)).usage_id for job in jobs}
        assert len(lines) == JOBS
        completed = sum(end.state is JobState.COMPLETED for end in ends.values())
        assert sum(line["cost"] for line in lines) == completed * 2 * CREDIT
        assert await s.holds() == [("job", "settled")] * JOBS
        claims = await rows(s.h, "select state, count(*) as n from agent.idempotency_keys group by state")
        assert [(row["state"], row["n"]) for row in claims] == [("completed", JOBS + CONTRADICTED)]
        assert sum(end.late_report is not None for end in ends.values()) == CONTRADICTED
