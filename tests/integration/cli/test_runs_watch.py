"""``agentic runs watch``: what happens to a run, a line each, until it is over."""

import json
from typing import TYPE_CHECKING

import pytest

from agentic.cli.run_watch import event_line

if TYPE_CHECKING:
    from tests.integration.cli.conftest import Seed, Shell

pytestmark = pytest.mark.timeout(300)  # each command is a process of its own


def test_a_run_that_is_over_is_told_from_its_beginning_or_from_a_number_on(seed: "Seed", shell: "Shell") -> None:
    run = seed.unknown
    watched = shell("runs", "watch", run, "--json")
    events = [json.loads(line) for line in watched.out.splitlines()]
    assert [event["seq"] for event in events] == list(range(1, len(events) + 1)), watched.err
    assert events[0]["kind"] == "run.started"
    assert "tool.call.uncertain" in [event["kind"] for event in events]
    assert watched.err.strip() == f"run {run} is succeeded"
    later = shell("runs", "watch", run, "--after", str(len(events) - 1))
    assert [line.split()[0] for line in later.out.splitlines()] == [str(len(events))]


def test_a_run_is_watched_while_it_goes_on(seed: "Seed", shell: "Shell") -> None:
    with shell.start("runs", "watch", seed.run) as watching:
        assert watching.stdout is not None
        for line in watching.stdout:
            if "run.parked" in line:
                break
        assert watching.poll() is None
        watching.kill()


def test_the_words_of_a_model_cannot_move_the_cursor() -> None:
    line = event_line(
        {"seq": 7, "at": "2026-01-01T00:00:00+00:00", "kind": "text", "data": {"offset": 0, "text": "a\n\x1b[2Jb"}}
    )
    assert line == "    7  2026-01-01 00:00:00+00:00  text                  a\\n\\x1b[2Jb"
