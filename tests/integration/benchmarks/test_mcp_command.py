"""What remote servers cost: the command measures sessions beside the SDK's and governed calls, and its counts are exact."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
PAGE = ROOT / "benchmarks" / "README.md"


@pytest.mark.timeout(240)
def test_a_session_and_a_governed_call_cost_the_counts_that_the_page_says_and_stand_beside_the_sdks() -> None:
    command = [sys.executable, "-m", "benchmarks.mcp", "--json", "--calls", "20", "--sessions", "3", "--seconds", "0.1"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=200, check=True)
    found = json.loads(done.stdout)
    ours = {row["transport"]: row for row in found["rows"] if row["client"] == "agentic"}
    assert {name: (row["descriptors"], row["processes"]) for name, row in ours.items()} == {
        cells[0]: (float(cells[-2]), float(cells[-1])) for cells in _rows("session")
    }
    assert {row["workload"]: (row["statements"], row["commits"]) for row in found["governed"]} == {
        cells[0]: (float(cells[-2]), float(cells[-1])) for cells in _rows("governed call")
    }
    assert len(ours) == 2 and all(row["call_of_sdk"] > 0 and row["open_of_sdk"] > 0 for row in ours.values())
    assert {row["call_of_sdk"] for row in found["rows"] if row["client"] == "sdk"} == {1}


def _rows(first: str) -> list[list[str]]:
    """Cells of the page's table whose first column has this name."""
    section = PAGE.read_text().split("# What a remote server costs", 1)[1]
    table = section.split(f"\n| {first} |", 1)[1].split("\n\n", 1)[0]
    lines = [line for line in table.splitlines() if line.startswith("| `")]
    return [[cell.strip().strip("`") for cell in line.strip("|").split("|")] for line in lines]


@pytest.mark.parametrize("wrong", [["--calls", "0"], ["--sessions", "many"]], ids=" ".join)
def test_figures_of_no_session_are_not_asked_for(wrong: list[str]) -> None:
    command = [sys.executable, "-m", "benchmarks.mcp", *wrong]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2
    assert "usage:" in done.stderr
