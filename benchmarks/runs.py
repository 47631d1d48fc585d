"""``python -m benchmarks.runs``: what a run costs: its segments, its wait for a person, the way from a decision to its effect."""

import argparse
import asyncio
import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.segments import LONG, bytes_per_parked_run, segment_cost
from benchmarks.served import served
from benchmarks.stage import open_stage, open_url


def main(arguments: Sequence[str] | None = None) -> None:
    """Measures and prints; see ``README.md`` beside this file."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.runs", description=__doc__)
    parser.add_argument("--json", action="store_true", help="print one JSON value in place of the table")
    parser.add_argument("--runs", type=_count, default=60, help="runs of each kind (default: 60)")
    parser.add_argument("--workers", type=_count, default=2, help="worker processes (default: 2)")
    given = parser.parse_args(arguments)
    found = asyncio.run(run(runs=given.runs, workers=given.workers))
    if given.json:
        print(json.dumps(found, indent=2))
    else:
        Console(width=100).print(as_table(found))


async def run(*, runs: int, workers: int) -> dict[str, Any]:
    """Every figure, with the ratios that outlive the machine."""
    async with open_stage() as stage:
        short = await segment_cost(stage, runs=runs, messages=1)
        long = await segment_cost(stage, runs=max(2, runs // 10), messages=LONG)
        parked = await bytes_per_parked_run(stage, runs=runs)
        version = stage.server_version
    async with open_url() as url:
        seen = await served(url, workers=workers, runs=runs, decisions=max(2, runs // 3))
    return {
        "server_version": version,
        "segment": asdict(short),
        "segment_500_messages": asdict(long),
        "long_over_short": long.ms / short.ms,
        "bytes_per_parked_run": parked,
        "served": asdict(seen),
        "decision_to_effect_over_segment": seen.decision_to_effect_p50_ms / short.ms,
    }


def as_table(found: dict[str, Any]) -> Table:
    """The same for people."""
    table = Table(title=f"A run, on PostgreSQL {found['server_version']}", show_header=False)
    short, long, seen = found["segment"], found["segment_500_messages"], found["served"]
    rows = (
        ("a segment without model time", _segment(short)),
        ("the same with 500 messages", f"{_segment(long)}  ({found['long_over_short']:.1f} ×)"),
        ("a run that waits for a person", f"{found['bytes_per_parked_run'] / 1024:.1f} KiB on the disk"),
        (f"runs ended, {seen['workers']} worker processes", f"{seen['runs_s']:.1f} a second"),
        (
            "from a decision to the claim of its effect",
            f"p50 {seen['decision_to_effect_p50_ms']:.0f} ms, p99 {seen['decision_to_effect_p99_ms']:.0f} ms",
        ),
    )
    for name, value in rows:
        table.add_row(name, value)
    return table


def _segment(cost: dict[str, Any]) -> str:
    return (
        f"{cost['statements']:.1f} statements, {cost['commits']:.1f} commits, {cost['wal_bytes']:.0f} bytes of WAL, "
        f"{cost['ms']:.1f} ms"
    )


def _count(text: str) -> int:
    value = int(text)
    if not 1 <= value <= 1000:
        raise argparse.ArgumentTypeError("give a number from 1 to 1000")
    return value


if __name__ == "__main__":
    main()
