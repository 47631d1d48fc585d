"""The command measures everything and prints one value."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.timeout(180)
def test_the_command_prints_one_json_value_with_a_row_for_each_call_and_number_of_workers() -> None:
    command = [sys.executable, "-m", "benchmarks.invoker", "--json", "--seconds", "0.05", "--workers", "1", "2"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=True)
    found = json.loads(done.stdout)
    assert {(row["workload"], row["workers"]) for row in found["rows"]} >= {
        (name, workers) for name in ("bare_commit", "read", "allowed_write", "replay") for workers in (1, 2)
    }
    assert set(found["speedup"]["allowed_write"]) == {"2"}


@pytest.mark.parametrize("wrong", [["--seconds", "0"], ["--workers", "0"], ["--workers", "many"]], ids=" ".join)
def test_figures_of_nothing_are_not_asked_for(wrong: list[str]) -> None:
    command = [sys.executable, "-m", "benchmarks.invoker", *wrong]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2
    assert "usage:" in done.stderr
