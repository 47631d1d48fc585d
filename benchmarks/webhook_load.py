"""Callbacks at a rate: each is due at its time whether or not the earlier ones were answered, and its answer is timed from then.

Everything is prepared and signed before the clock starts. Afterwards the database says whether anything was lost or done twice.
"""

import asyncio
import json
import random
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import asdict, dataclass, field
from typing import Any, Final

import httpx
from rich.table import Table

from agentic.api.webhooks import PATH, FailureLimits
from agentic.contract.errors import ProgramFault
from agentic.local.providers.fullenrich import FullEnrichStandIn
from benchmarks.measure import quantile
from benchmarks.webhook_server import BEGIN, END, JOBS, KEY, PROOF, PROVIDER
from benchmarks.webhook_wire import EventTaker, KeptConnection, post

CONNECTIONS: Final = 32
LATE_MS: Final = 300.0
"""An answer after this is late."""
_TAKEN, _FORGED = 200, 401
_DECADE: Final = ("first", "first", "first", "first", "first", "again", "again", "again", "progress", "forged")
"""Ten deliveries of five jobs."""
_DISORDER: Final = 50
"""By how many places a delivery may come before or after its turn."""
_SEED: Final = 7
_WARM: Final = 32
_START_S: Final = 0.2


@dataclass(frozen=True, kw_only=True, slots=True)
class Delivery:
    """One request, ready to be sent."""

    request: bytes
    forged: bool


@dataclass(kw_only=True, slots=True)
class Answers:
    """What came back: milliseconds since each was due."""

    believed_ms: list[float] = field(default_factory=list)
    forged_ms: list[float] = field(default_factory=list)
    statuses: Counter[tuple[bool, int]] = field(default_factory=Counter)


@dataclass(frozen=True, kw_only=True, slots=True)
class Load:
    """What a load took and cost; what is per callback counts every request, forged ones too.

    Attributes:
        rate: requests that came due a second.
        sent: requests.
        jobs: that they were about.
        answered: as each must be.
        late: believed deliveries that were answered after 300 ms.
        p50_ms: of believed deliveries, from the time each was due; so ``p99_ms``, ``max_ms``.
        forged_p99_ms: of those that were refused.
        event_requests: in which the events of ended jobs left before the answers.
        swept: events that the sweep sent, because the function server did not take them in time.
        server_cpu_ms: per callback; so ``client_cpu_ms``, ``postgres_cpu_ms``, ``statements``, ``commits``.
        lost: jobs that have not ended, or that nobody was told of.
        settled: jobs with exactly one line of usage, after each was settled twice.
    """

    rate: float
    seconds: float
    sent: int
    jobs: int
    answered: int
    late: int
    p50_ms: float
    p99_ms: float
    max_ms: float
    forged_p99_ms: float
    event_requests: int
    swept: int
    statements: float
    commits: float
    server_cpu_ms: float
    postgres_cpu_ms: float
    client_cpu_ms: float
    lost: int
    settled: int


async def load(url: str, events: EventTaker, *, rate: float, seconds: float) -> tuple[Load, str]:
    """Send callbacks for a while; what that took, and the server's version.

    Args:
        url: the measured server, which sends its events to ``events``.
        events: takes them.
        rate: requests a second.
        seconds: for how long.

    Raises:
        ProgramFault: a delivery was not answered as it must be, or the database does not say that each job ended once, was told of
            and is paid once.
    """
    count = max(len(_DECADE), round(rate * seconds))
    async with httpx.AsyncClient(base_url=url, timeout=120, trust_env=False) as http:
        jobs = await _made(http, count // 2 + len(_DECADE))
        prepared = deliveries(url, count, jobs)
        about = len({kind[1] for kind in _kinds(count, jobs) if kind[0] == "first"})
        spare = await _made(http, _WARM)
        async with AsyncExitStack() as stack:
            providers = [await _opened(stack, url, "127.0.0.1") for _ in range(CONNECTIONS)]
            forgers = [await _opened(stack, url, address) for address in _addresses(prepared)]
            for connection, job in zip(providers, spare, strict=True):
                await connection.send(_request(url, job, "FINISHED"))
            (await http.post(BEGIN)).raise_for_status()
            warmed, computed = events.requests, time.process_time()
            answers = await _sent(prepared, providers, forgers, rate=rate)
            computed = time.process_time() - computed
            counts = (await http.post(END)).raise_for_status().json()
            requests = events.requests - warmed
        wrong = {key: n for key, n in answers.statuses.items() if key not in {(False, _TAKEN), (True, _FORGED)}}
        if wrong:
            raise ProgramFault(f"deliveries were answered as none may be ((forged, status): how many): {wrong}")
        proof = (await http.post(PROOF)).raise_for_status().json()
    forged = len(answers.forged_ms)
    _check(proof, events, jobs=about + _WARM, made=len(jobs) + _WARM, forged=forged, believed=count - forged + _WARM)
    times, refused = sorted(answers.believed_ms), sorted(answers.forged_ms)
    return (
        Load(
            rate=rate,
            seconds=seconds,
            sent=count,
            jobs=about,
            answered=sum(answers.statuses.values()),
            late=sum(took > LATE_MS for took in times),
            p50_ms=quantile(times, 0.50),
            p99_ms=quantile(times, 0.99),
            max_ms=times[-1],
            forged_p99_ms=quantile(refused, 0.99),
            event_requests=requests,
            swept=proof["swept"],
            statements=counts["statements"] / count,
            commits=counts["commits"] / count,
            server_cpu_ms=counts["cpu_s"] / count * 1000,
            postgres_cpu_ms=counts["postgres_cpu_s"] / count * 1000,
            client_cpu_ms=computed / count * 1000,
            lost=about + _WARM - min(proof["ended"], len(set(events.jobs))),
            settled=proof["paid_once"] - _WARM,
        ),
        counts["server_version"],
    )


def deliveries(url: str, count: int, jobs: Sequence[str]) -> list[Delivery]:
    """So many requests in the order in which they come due; none keeps its place.

    Half of them end a job, three in ten say the same again, one in ten is progress, and one in ten is forged.
    """
    made = [
        Delivery(
            request=_request(
                url,
                job,
                "IN_PROGRESS" if kind == "progress" else "FINISHED",
                key="somebody-else" if kind == "forged" else KEY,
            ),
            forged=kind == "forged",
        )
        for kind, job in _kinds(count, jobs)
    ]
    chance = random.Random(_SEED)  # noqa: S311 - disorder, no secret
    places = sorted(range(count), key=lambda place: place + chance.uniform(-_DISORDER, _DISORDER))
    return [made[place] for place in places]


def as_table(found: Load, version: str) -> Table:
    """The same for people."""
    table = Table(
        title=f"{found.sent} callbacks at {found.rate:g} a second, on PostgreSQL {version}",
        show_header=False,
        width=100,
    )
    table.add_column("figure")
    table.add_column("value", justify="right")
    for name, value in asdict(found).items():
        table.add_row(name.replace("_", " "), f"{value:.2f}" if isinstance(value, float) else str(value))
    return table


def _kinds(count: int, jobs: Sequence[str]) -> list[tuple[str, str]]:
    """What each request is and which job it is about; five jobs for ten requests."""
    return [
        (_DECADE[place % len(_DECADE)], jobs[place // len(_DECADE) * 5 + place % len(_DECADE) % 5])
        for place in range(count)
    ]


def _request(url: str, job: str, status: str, *, key: str = KEY) -> bytes:
    body = report_body(job, status)
    return post(url, PATH.format(provider=PROVIDER, job_id=job), FullEnrichStandIn(KEY).signed(body, key=key), body)


def report_body(job: str, status: str = "FINISHED") -> bytes:
    """What a provider says of a job."""
    return json.dumps(
        {
            "id": f"batch-{job}",
            "name": f"agentic:{job}",
            "status": status,
            "cost": {"credits": 1},
            "data": [{"custom": {"ref": "a"}, "contact_info": {"emails": [{"email": "ida@nordlys.example"}]}}],
        }
    ).encode()


def _addresses(prepared: Sequence[Delivery]) -> list[str]:
    """So many forgers that nobody's bucket is empty: each of them is answered, and counted."""
    forged = sum(delivery.forged for delivery in prepared)
    return [f"127.0.{1 + n // 250}.{1 + n % 250}" for n in range(forged // FailureLimits().burst + 1)]


async def _made(http: httpx.AsyncClient, count: int) -> list[str]:
    made: list[str] = (await http.post(JOBS, params={"count": count})).raise_for_status().json()
    return made


async def _opened(stack: AsyncExitStack, url: str, address: str) -> KeptConnection:
    connection = await KeptConnection.open(url, address=address)
    stack.push_async_callback(connection.close)
    return connection


async def _sent(
    prepared: Sequence[Delivery],
    providers: Sequence[KeptConnection],
    forgers: Sequence[KeptConnection],
    *,
    rate: float,
) -> Answers:
    """Hand each delivery out at its time, to whichever connection is free first."""
    answers = Answers()
    believed: asyncio.Queue[tuple[Delivery, float] | None] = asyncio.Queue()
    forged: list[asyncio.Queue[tuple[Delivery, float] | None]] = [asyncio.Queue() for _ in forgers]
    async with asyncio.TaskGroup() as group:
        for connection in providers:
            group.create_task(_deliver(connection, believed, answers))
        for connection, queue in zip(forgers, forged, strict=True):
            group.create_task(_deliver(connection, queue, answers))
        began, refused = time.perf_counter() + _START_S, 0
        for place, delivery in enumerate(prepared):
            due = began + place / rate
            if (wait_s := due - time.perf_counter()) > 0:
                await asyncio.sleep(wait_s)
            if delivery.forged:
                forged[refused % len(forged)].put_nowait((delivery, due))
                refused += 1
            else:
                believed.put_nowait((delivery, due))
        for queue in (*(believed for _ in providers), *forged):
            queue.put_nowait(None)
    return answers


async def _deliver(
    connection: KeptConnection, queue: asyncio.Queue[tuple[Delivery, float] | None], answers: Answers
) -> None:
    while (next_one := await queue.get()) is not None:
        delivery, due = next_one
        status = await connection.send(delivery.request)
        took_ms = (time.perf_counter() - due) * 1000
        (answers.forged_ms if delivery.forged else answers.believed_ms).append(took_ms)
        answers.statuses[delivery.forged, status] += 1


def _check(proof: dict[str, Any], events: EventTaker, *, jobs: int, made: int, forged: int, believed: int) -> None:
    """Whether the database says what has to be.

    Raises:
        ProgramFault: it does not.
    """
    wanted = {
        "made": made,
        "ended": jobs,
        "claims": jobs,
        "events": jobs,
        "pending": 0,
        "paid_once": jobs,
        "lines": jobs,
        "bad_signature": forged,
        "changed_nothing": believed - jobs,
    }
    told = {**{name: proof[name] for name in wanted}, "told": len(set(events.jobs))}
    if told != {**wanted, "told": jobs}:
        raise ProgramFault(f"something was lost or done twice; found {told}, where {wanted} is due")
