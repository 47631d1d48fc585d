"""What callbacks cost: the command sends them through a socket to a process of its own, and their counts are exact."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
PAGE = ROOT / "benchmarks" / "README.md"


@pytest.mark.timeout(180)
def test_each_kind_of_callback_costs_the_statements_and_commits_that_the_page_says_however_many_come_at_once() -> None:
    command = [sys.executable, "-m", "benchmarks.webhooks", "--json", "--jobs", "12", "--senders", "1", "8"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=150, check=True)
    rows = json.loads(done.stdout)["rows"]
    said = {
        cells[0].strip("`"): (float(cells[2]), float(cells[3]))
        for cells in ([cell.strip() for cell in line.strip("|").split("|")] for line in _table())
    }
    for senders in (1, 8):
        counted = {row["workload"]: (row["statements"], row["commits"]) for row in rows if row["workers"] == senders}
        assert counted == said
    assert said.keys() == counted.keys() >= {"first", "duplicate", "forged"}
    assert {row["workload"]: row["calls"] for row in rows if row["workers"] == 8}["first_and_duplicate"] == 24
    assert all(row["of_bare_commit"] > 0 and row["p50_ms"] <= row["p99_ms"] for row in rows)


def _table() -> list[str]:
    """Rows of the page's table of requests."""
    section = PAGE.read_text().split("# What a callback costs", 1)[1].split("\n#", 1)[0]
    return [line for line in section.splitlines() if line.startswith("| `")]


@pytest.mark.parametrize("wrong", [["--jobs", "0"], ["--senders", "many"]], ids=" ".join)
def test_figures_of_no_callback_are_not_asked_for(wrong: list[str]) -> None:
    command = [sys.executable, "-m", "benchmarks.webhooks", *wrong]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2
    assert "usage:" in done.stderr
