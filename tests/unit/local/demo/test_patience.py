"""How long a failing model provider is borne, and what is said meanwhile."""

from datetime import UTC, datetime, timedelta
from typing import Any

from agentic.local.demo.patience import GIVE_UP_S, Patience

NOW = datetime(2031, 5, 6, tzinfo=UTC)


class Watch:
    def __init__(self) -> None:
        self.seconds = 0.0

    def monotonic(self) -> float:
        return self.seconds

    def now(self) -> datetime:
        return NOW + timedelta(seconds=self.seconds)


def tree(*statuses: str, due_s: float | None = None) -> dict[str, Any]:
    spans = [
        {
            "kind": "llm",
            "state": "closed",
            "status": status,
            "code": None,
            "attributes": {} if status == "ok" else {"error": "APIConnectionError: refused"},
        }
        for status in statuses
    ]
    due = None if due_s is None else (NOW + timedelta(seconds=due_s)).isoformat()
    return {"run": {"due_at": due}, "spans": spans}


def watched() -> tuple[Watch, Patience]:
    watch = Watch()
    return watch, Patience(monotonic=watch.monotonic, now=watch.now)


def test_each_failure_is_told_once_with_the_time_of_the_next_try() -> None:
    _, patience = watched()
    said = patience.look(tree("error", due_s=15))
    assert said is not None
    assert "in 15 s" in said
    assert patience.look(tree("error", due_s=15)) is None
    assert patience.look(tree("error", "error", due_s=45)) is not None


def test_patience_ends_after_a_minute_of_nothing_but_failures() -> None:
    watch, patience = watched()
    patience.look(tree("error", due_s=15))
    watch.seconds = GIVE_UP_S - 1
    patience.look(tree("error", "error", due_s=100))
    assert not patience.over()
    watch.seconds = GIVE_UP_S
    assert patience.over()
    sentence = str(patience.verdict(tree("error"), "openai:gpt-5"))
    assert "APIConnectionError: refused" in sentence
    assert "openai:gpt-5" in sentence


def test_an_answer_in_between_restores_it() -> None:
    watch, patience = watched()
    patience.look(tree("error", due_s=15))
    patience.look(tree("error", "ok"))
    watch.seconds = GIVE_UP_S + 1
    assert not patience.over()
    assert patience.look(tree("ok")) is None
