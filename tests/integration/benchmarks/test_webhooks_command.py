"""What callbacks cost: the command sends them through a socket to a process of its own, and their counts are exact."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[3]
PAGE = ROOT / "benchmarks" / "README.md"


@pytest.mark.timeout(180)
def test_each_kind_of_callback_costs_the_statements_and_commits_that_the_page_says_and_less_when_many_come_at_once() -> (
    None
):
    found = measured("--jobs", "12", "--senders", "1", "8")
    rows = found["rows"]
    said = {
        cells[0].strip("`"): (float(cells[2]), float(cells[3]))
        for cells in ([cell.strip() for cell in line.strip("|").split("|")] for line in _table())
    }
    alone, together = (
        {row["workload"]: (row["statements"], row["commits"]) for row in rows if row["workers"] == senders}
        for senders in (1, 8)
    )
    assert alone == said
    assert (alone["first"], alone["duplicate"], alone["forged"]) == ((2, 2), (2, 1), (1, 1))
    assert alone.keys() == together.keys()
    # a report that meets another of its job on the way waits behind its lock, which is a commit where a duplicate alone has none
    assert all(statements <= alone[kind][0] and commits <= 2 for kind, (statements, commits) in together.items())
    assert {row["workload"]: row["calls"] for row in rows if row["workers"] == 8}["first_and_duplicate"] == 24
    assert all(row["of_bare_commit"] > 0 and row["p50_ms"] <= row["p99_ms"] for row in rows)


@pytest.mark.guarantee("W1", "W2", "M1", "T3")
@pytest.mark.timeout(180)
def test_of_callbacks_that_come_at_a_rate_in_disorder_none_is_lost_and_each_job_is_paid_once() -> None:
    """The command itself fails where the database says otherwise; what it says it measured is checked here."""
    found = measured("--rate", "100", "--seconds", "2")
    assert found["sent"] == found["answered"] == 200
    assert found["jobs"] == found["settled"] == 100
    assert found["lost"] == 0
    # a first report and its event are two statements, a forged one is its count
    assert found["statements"] <= 2
    assert found["commits"] <= 2
    assert found["p50_ms"] <= found["p99_ms"] <= found["max_ms"]


def measured(*options: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "benchmarks.webhooks", "--json", *options]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=150, check=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def _table() -> list[str]:
    """Rows of the page's table of requests."""
    section = PAGE.read_text().split("# What a callback costs", 1)[1].split("\n#", 1)[0]
    return [line for line in section.splitlines() if line.startswith("| `")]


@pytest.mark.parametrize(
    "wrong", [["--jobs", "0"], ["--senders", "many"], ["--rate", "0"], ["--rate", "fast"]], ids=" ".join
)
def test_figures_of_no_callback_are_not_asked_for(wrong: list[str]) -> None:
    command = [sys.executable, "-m", "benchmarks.webhooks", *wrong]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2
    assert "usage:" in done.stderr
    assert "give a number" in done.stderr
