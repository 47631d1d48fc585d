"""Figures are put beside the ceiling and the single worker they belong to."""

import json

import pytest
from rich.console import Console

from benchmarks.measure import Figures, quantile
from benchmarks.report import as_json, as_table, speedups


def figures(workload: str, workers: int, ops_s: float) -> Figures:
    return Figures(
        workload=workload,
        workers=workers,
        calls=100,
        statements=3,
        transactions=3,
        commits=2,
        wal_bytes=1234.5678,
        ops_s=ops_s,
        p50_ms=1.5,
        p99_ms=9.5,
        cpu_ms=0.7,
    )


FOUND = [
    figures("bare_commit", 1, 1000),
    figures("allowed_write", 1, 200),
    figures("bare_commit", 4, 2000),
    figures("allowed_write", 4, 500),
]


@pytest.mark.parametrize(
    ("share", "expected"),
    [(0.5, 50.0), (0.99, 99.0), (1.0, 100.0), (0.001, 1.0)],
    ids=["median", "p99", "all", "least"],
)
def test_a_quantile_is_a_value_that_was_measured(share: float, expected: float) -> None:
    assert quantile([float(n) for n in range(1, 101)], share) == expected


def test_a_row_is_held_against_the_ceiling_of_as_many_workers() -> None:
    rows = as_json(FOUND, server_version="18.0", seconds=1)["rows"]
    assert [(row["workload"], row["workers"], row["of_ceiling"]) for row in rows] == [
        ("bare_commit", 1, 1.0),
        ("allowed_write", 1, 0.2),
        ("bare_commit", 4, 1.0),
        ("allowed_write", 4, 0.25),
    ]


def test_more_workers_are_held_against_one_of_the_same_workload() -> None:
    assert speedups(FOUND) == {"bare_commit": {"4": 2.0}, "allowed_write": {"4": 2.5}}


def test_without_a_ceiling_or_a_single_worker_nothing_is_made_up() -> None:
    alone = [figures("allowed_write", 4, 500)]
    found = as_json(alone, server_version="18.0", seconds=1)
    assert (found["rows"][0]["of_ceiling"], found["speedup"]) == (None, {})


def test_the_value_is_json_and_the_table_says_the_same() -> None:
    found = json.loads(json.dumps(as_json(FOUND, server_version="18.0", seconds=1)))
    assert found["rows"][1]["wal_bytes"] == 1234.568
    console = Console(width=140, record=True, file=None, quiet=False, force_terminal=False)
    with console.capture() as captured:
        console.print(as_table(FOUND, server_version="18.0"))
    text = captured.get()
    assert "allowed_write" in text
    assert "2.50 ×" in text
    assert "0.25" in text
