"""What the engine tells functions about a run that ended."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, cast

import pytest

from agentic.local.engine.event_object import CANCELLED, FAILED, FINISHED, Ending, report_of
from agentic.local.engine.store import Transaction

NOW = datetime(2026, 5, 4, 12, 0, tzinfo=UTC)
EVENT = {"name": "order.placed", "id": "e-1", "data": {"n": 1}, "ts": 1, "user": {}}
ERROR = {"name": "ValueError", "message": "no", "code": "unknown", "stack": "at x"}


def _report(status: Ending, result: Any, *, name: str = "order.placed", retriable: bool = True) -> list[dict[str, Any]]:
    return list(
        report_of(
            Transaction(connection=cast("Any", None), now=NOW),
            run_id="01RUN",
            function_id="shop-ships",
            events=[{**EVENT, "name": name}, {**EVENT, "id": "e-2"}],
            status=status,
            result=result,
            retriable=retriable,
        )
    )


def test_a_completed_run_is_reported_once_with_its_result() -> None:
    (report,) = _report("completed", {"ok": True})
    assert report["name"] == FINISHED
    assert report["data"] == {
        "event": EVENT,
        "events": [
            {key: value for key, value in {**EVENT, "id": id_}.items() if key != "user"} for id_ in ("e-1", "e-2")
        ],
        "function_id": "shop-ships",
        "result": {"ok": True},
        "run_id": "01RUN",
    }


@pytest.mark.parametrize(("status", "name"), [("failed", FAILED), ("cancelled", CANCELLED)])
def test_another_end_is_told_under_the_runs_id_too(status: Ending, name: str) -> None:
    finished, special = _report(status, ERROR)
    assert (finished["name"], special["name"], special["id"]) == (FINISHED, name, "01RUN")
    assert special["data"] == finished["data"]
    assert special["data"]["error"] == {"error": "ValueError", "message": "no", "name": "ValueError", "stack": "at x"}


def test_an_error_that_forbade_more_attempts_says_so() -> None:
    _, failed = _report("failed", ERROR, retriable=False)
    assert failed["data"]["error"]["error"] == "NonRetriableError"


@pytest.mark.parametrize("name", [FINISHED, FAILED])
def test_the_end_of_a_run_that_was_started_by_an_end_is_not_told(name: str) -> None:
    assert _report("failed", ERROR, name=name) == []
