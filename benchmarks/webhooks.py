"""``python -m benchmarks.webhooks``: what a provider's callback costs, from the socket to the disk and back."""

import argparse
import asyncio
import json
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict
from typing import Any, Final

import httpx
from rich.console import Console
from rich.table import Table

from agentic.api.webhooks import PATH
from agentic.contract.errors import ProgramFault
from agentic.local.providers.fullenrich import FullEnrichStandIn
from benchmarks import webhook_load, webhook_wire
from benchmarks.measure import Figures, quantile
from benchmarks.webhook_server import BARE, BEGIN, END, JOBS, KEY, PROVIDER

_PATIENCE_S: Final = 60.0
_TAKEN, _FORGED = 200, 401
Delivery = Callable[[httpx.AsyncClient], Awaitable[httpx.Response]]
"""One request."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Measures and prints; see ``README.md`` beside this file."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.webhooks", description=__doc__)
    parser.add_argument("--json", action="store_true", help="print one JSON value in place of the table")
    parser.add_argument(
        "--jobs", type=_count, default=1000, help="jobs of each row that are reported on (default: 1000)"
    )
    parser.add_argument("--senders", type=_count, nargs="+", default=[1, 16], help="requests at once (default: 1 16)")
    parser.add_argument(
        "--rate", type=_rate, help="send on a schedule instead: so many requests a second, of every kind"
    )
    parser.add_argument("--seconds", type=_rate, default=20, help="how long, with --rate (default: 20)")
    given = parser.parse_args(arguments)
    if given.rate is not None:
        loaded, version = asyncio.run(run_load(rate=given.rate, seconds=given.seconds))
        if given.json:
            print(json.dumps({"server_version": version, **asdict(loaded)}, indent=2))
        else:
            Console(width=120).print(webhook_load.as_table(loaded, version))
        return
    found = asyncio.run(run(jobs=given.jobs, senders=list(dict.fromkeys(given.senders))))
    if given.json:
        print(json.dumps(found, indent=2))
    else:
        Console(width=120).print(as_table(found))


async def run_load(*, rate: float, seconds: float) -> tuple[webhook_load.Load, str]:
    """Callbacks of every kind at a rate, and the server's version."""
    async with webhook_wire.EventTaker() as events, _server("--events", events.url) as url:
        return await webhook_load.load(url, events, rate=rate, seconds=seconds)


async def run(*, jobs: int, senders: Sequence[int]) -> dict[str, Any]:
    """Every kind of delivery with each number of senders, beside a request that commits one row."""
    rows: list[Figures] = []
    version = ""
    async with _server() as url:
        for count in senders:
            limits = httpx.Limits(max_connections=count, max_keepalive_connections=count)
            async with httpx.AsyncClient(base_url=url, limits=limits, timeout=_PATIENCE_S, trust_env=False) as http:
                for name, deliveries in await _workloads(http, jobs, warm=count):
                    figures, version = await _measure(http, name, deliveries, senders=count)
                    rows.append(figures)
    return {"server_version": version, "jobs": jobs, "rows": [_row(row, rows) for row in rows]}


def as_table(found: dict[str, Any]) -> Table:
    """The same for people."""
    table = Table(title=f"A callback, on PostgreSQL {found['server_version']}")
    table.add_column("request", no_wrap=True)
    for name in ("senders", "statements", "commits", "a second", "p50 ms", "p99 ms", "CPU ms", "of bare commit"):
        table.add_column(name, justify="right")
    for place, row in enumerate(found["rows"]):
        table.add_row(
            row["workload"],
            str(row["workers"]),
            f"{row['statements']:.2f}",
            f"{row['commits']:.2f}",
            f"{row['ops_s']:.0f}",
            f"{row['p50_ms']:.2f}",
            f"{row['p99_ms']:.2f}",
            f"{row['cpu_ms']:.2f}",
            f"{row['of_bare_commit']:.2f}",
            end_section=found["rows"][place + 1 :] != [] and found["rows"][place + 1]["workers"] != row["workers"],
        )
    return table


async def _workloads(http: httpx.AsyncClient, jobs: int, *, warm: int) -> list[tuple[str, list[tuple[Delivery, int]]]]:
    """Rows in order, each request with the status it must have."""
    await asyncio.gather(*(http.post(BARE) for _ in range(warm)))
    made = (await http.post(JOBS, params={"count": 2 * jobs + warm})).raise_for_status().json()
    alone, again, spare = made[:jobs], made[jobs : 2 * jobs], made[2 * jobs :]
    await asyncio.gather(*(_report(job)(http) for job in spare))
    firsts = [(_report(job), _TAKEN) for job in alone]
    return [
        ("bare_commit", [(_bare, _TAKEN)] * jobs),
        ("first", firsts),
        ("duplicate", firsts),
        ("first_and_duplicate", [(_report(job), _TAKEN) for job in again for _ in range(2)]),
        ("forged", [(_report(job, key="somebody-else"), _FORGED) for job in alone]),
    ]


async def _measure(
    http: httpx.AsyncClient, name: str, deliveries: Sequence[tuple[Delivery, int]], *, senders: int
) -> tuple[Figures, str]:
    """Send all of it, ``senders`` at once.

    Raises:
        ProgramFault: a request was not answered as it must be.
    """
    (await http.post(BEGIN)).raise_for_status()
    began = time.perf_counter()
    left = iter(deliveries)
    taken = await asyncio.gather(*(_send(http, name, left) for _ in range(senders)))
    lasted = time.perf_counter() - began
    counts = (await http.post(END)).raise_for_status().json()
    times = sorted(took for sender in taken for took in sender)
    calls = len(times)
    figures = Figures(
        workload=name,
        workers=senders,
        calls=calls,
        statements=counts["statements"] / calls,
        transactions=counts["transactions"] / calls,
        commits=counts["commits"] / calls,
        wal_bytes=counts["wal_bytes"] / calls,
        ops_s=calls / lasted,
        p50_ms=quantile(times, 0.50) * 1000,
        p99_ms=quantile(times, 0.99) * 1000,
        cpu_ms=counts["cpu_s"] / calls * 1000,
    )
    return figures, counts["server_version"]


async def _send(http: httpx.AsyncClient, name: str, left: Iterator[tuple[Delivery, int]]) -> list[float]:
    taken: list[float] = []
    for deliver, status in left:  # shared: each request is sent by whoever is free
        began = time.perf_counter()
        answer = await deliver(http)
        taken.append(time.perf_counter() - began)
        if answer.status_code != status:
            raise ProgramFault(f"{name}: answered {answer.status_code} where {status} was due: {answer.text[:200]}")
    return taken


def _report(job: str, *, key: str = KEY) -> Delivery:
    """The report that ends a job, as its provider sends it."""
    body = webhook_load.report_body(job)
    headers = FullEnrichStandIn(KEY).signed(body, key=key)
    path = PATH.format(provider=PROVIDER, job_id=job)

    async def deliver(http: httpx.AsyncClient) -> httpx.Response:
        return await http.post(path, content=body, headers=headers)

    return deliver


async def _bare(http: httpx.AsyncClient) -> httpx.Response:
    return await http.post(BARE)


@asynccontextmanager
async def _server(*options: str) -> AsyncIterator[str]:
    """The measured process; its address."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "benchmarks.webhook_server", *options),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        async with asyncio.timeout(_PATIENCE_S):
            url = (await process.stdout.readline()).decode().strip()
        if not url:
            raise ProgramFault("the measured process ended before it served; what it said stands above")
        yield url
    finally:
        process.stdin.close()
        try:
            async with asyncio.timeout(_PATIENCE_S):
                await process.wait()
        except TimeoutError:
            process.kill()
            await process.wait()


def _row(row: Figures, rows: Sequence[Figures]) -> dict[str, Any]:
    bare = next(other for other in rows if other.workload == "bare_commit" and other.workers == row.workers)
    told = {name: round(value, 4) if isinstance(value, float) else value for name, value in asdict(row).items()}
    return {**told, "of_bare_commit": round(row.ops_s / bare.ops_s, 3)}


def _count(text: str) -> int:
    value = int(text) if text.isdecimal() else 0
    if not 1 <= value <= 100_000:
        raise argparse.ArgumentTypeError("give a number from 1 to 100,000")
    return value


def _rate(text: str) -> float:
    wrong = argparse.ArgumentTypeError("give a number above 0, up to 10,000")
    try:
        value = float(text)
    except ValueError:
        raise wrong from None
    if not 0 < value <= 10_000:
        raise wrong
    return value


if __name__ == "__main__":
    main()
