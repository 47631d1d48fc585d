"""Figures side by side: against the ceiling of the same worker count, and against one worker."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from rich.table import Table

from benchmarks.measure import Figures
from benchmarks.workloads import BARE, UNMETERED


def as_json(figures: Sequence[Figures], *, server_version: str, seconds: float) -> dict[str, Any]:
    """The one value that ``--json`` prints."""
    return {
        "server_version": server_version,
        "seconds": seconds,
        "rows": [
            {**{name: _rounded(value) for name, value in asdict(row).items()}, "of_ceiling": _of_ceiling(row, figures)}
            for row in figures
        ],
        "speedup": speedups(figures),
        "of_unmetered": of_unmetered(figures),
    }


def as_table(figures: Sequence[Figures], *, server_version: str) -> Table:
    """The same for people."""
    table = Table(title=f"A call, on PostgreSQL {server_version}")
    table.add_column("call", no_wrap=True)
    names = (
        "workers",
        "statements",
        "commits",
        "WAL bytes",
        "calls/s",
        "p50 ms",
        "p99 ms",
        "CPU ms",
        "of ceiling",
        "over 1",
    )
    for name in names:
        table.add_column(name, justify="right")
    gains = speedups(figures)
    for place, row in enumerate(figures):
        of_ceiling, gain = _of_ceiling(row, figures), gains.get(row.workload, {}).get(str(row.workers))
        table.add_row(
            row.workload,
            str(row.workers),
            f"{row.statements:.2f}",
            f"{row.commits:.2f}",
            f"{row.wal_bytes:.0f}",
            f"{row.ops_s:.0f}",
            f"{row.p50_ms:.2f}",
            f"{row.p99_ms:.2f}",
            f"{row.cpu_ms:.2f}",
            "" if of_ceiling is None else f"{of_ceiling:.2f}",
            "" if gain is None else f"{gain:.2f} ×",
            end_section=place + 1 < len(figures) and figures[place + 1].workers != row.workers,
        )
    ratios = of_unmetered(figures)
    if ratios:
        table.caption = "calls/s of the unmetered: " + ", ".join(
            f"{name} {', '.join(f'{ratio:.2f} with {workers}' for workers, ratio in by_workers.items())}"
            for name, by_workers in ratios.items()
        )
    return table


def of_unmetered(figures: Sequence[Figures]) -> dict[str, dict[str, float]]:
    """Calls a second of each metered call over those of the same call unmetered, by workload and number of workers."""
    speeds = {(row.workload, row.workers): row.ops_s for row in figures}
    ratios: dict[str, dict[str, float]] = {}
    for row in figures:
        plain = speeds.get((UNMETERED.get(row.workload, ""), row.workers))
        if plain is not None:
            ratios.setdefault(row.workload, {})[str(row.workers)] = round(row.ops_s / plain, 3)
    return ratios


def speedups(figures: Sequence[Figures]) -> dict[str, dict[str, float]]:
    """Calls a second with several workers over those with one, by workload and number of workers.

    What waits for others must come near the number of workers; a lock that the whole process shares would keep it at 1.
    """
    single = {row.workload: row.ops_s for row in figures if row.workers == 1}
    gains: dict[str, dict[str, float]] = {}
    for row in figures:
        if row.workers != 1 and row.workload in single:
            gains.setdefault(row.workload, {})[str(row.workers)] = round(row.ops_s / single[row.workload], 3)
    return gains


def _of_ceiling(row: Figures, figures: Sequence[Figures]) -> float | None:
    ceiling = next((each.ops_s for each in figures if each.workload == BARE.name and each.workers == row.workers), None)
    return None if ceiling is None else round(row.ops_s / ceiling, 3)


def _rounded(value: Any) -> Any:
    return round(value, 3) if isinstance(value, float) else value
