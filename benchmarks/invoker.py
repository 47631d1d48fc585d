"""``python -m benchmarks.invoker``: what a tool call costs, from the invoker down to the disk."""

import argparse
import asyncio
import json
from collections.abc import Sequence

from rich.console import Console

from benchmarks.measure import Figures, measure
from benchmarks.report import as_json, as_table
from benchmarks.stage import open_stage
from benchmarks.workloads import ALL


def main(arguments: Sequence[str] | None = None) -> None:
    """Measures and prints; see ``README.md`` beside this file."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.invoker", description=__doc__)
    parser.add_argument("--json", action="store_true", help="print one JSON value in place of the table")
    parser.add_argument("--seconds", type=_positive, default=2.0, help="how long each row is measured (default: 2)")
    parser.add_argument("--workers", type=_count, nargs="+", default=[1, 4, 16], help="calls at once (default: 1 4 16)")
    given = parser.parse_args(arguments)
    figures, version = asyncio.run(run(workers=list(dict.fromkeys(given.workers)), seconds=given.seconds))
    if given.json:
        print(json.dumps(as_json(figures, server_version=version, seconds=given.seconds), indent=2))
    else:
        Console(width=120).print(as_table(figures, server_version=version))


async def run(*, workers: Sequence[int], seconds: float) -> tuple[list[Figures], str]:
    """Every workload with each number of workers, the ceiling beside what is held against it, and the server's version."""
    async with open_stage() as stage:
        figures = [
            await measure(stage, workload, workers=count, seconds=seconds) for count in workers for workload in ALL
        ]
        return figures, stage.server_version


def _positive(text: str) -> float:
    value = float(text)
    if not 0 < value <= 600:
        raise argparse.ArgumentTypeError("give seconds above 0, at most 600")
    return value


def _count(text: str) -> int:
    value = int(text)
    if not 1 <= value <= 256:
        raise argparse.ArgumentTypeError("give a number of workers from 1 to 256")
    return value


if __name__ == "__main__":
    main()
