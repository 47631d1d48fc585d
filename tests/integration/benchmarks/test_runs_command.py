"""What runs cost: the command measures all of it, and what leading a run costs does not grow with its messages."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.timeout(240)
def test_the_command_prints_one_json_value_and_a_segment_costs_the_same_statements_however_long_the_run_is() -> None:
    command = [sys.executable, "-m", "benchmarks.runs", "--json", "--runs", "3", "--workers", "2"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=200, check=True)
    found = json.loads(done.stdout)
    short, long = found["segment"], found["segment_500_messages"]
    assert (short["statements"], short["commits"]) == (long["statements"], long["commits"])
    assert short["commits"] == 3  # the lease, the checkpoint, the end
    assert found["bytes_per_parked_run"] > 0
    assert found["served"]["runs_s"] > 0
    assert found["served"]["decisions"] == 2
    assert found["served"]["decision_to_effect_p50_ms"] <= found["served"]["decision_to_effect_p99_ms"]
