"""What is told of a server: its ids and codes, and of its own words the names of tools alone, as people can see them."""

import logging
from collections.abc import Callable
from typing import Any
from uuid import UUID, uuid4

import pytest

from agentic.services.mcp.catalog import Conflict, Rejected, RejectionCode
from agentic.services.mcp.config import AuthScheme
from agentic.services.mcp.failures import Trouble
from agentic.services.mcp.server_events import Teller

ORGANIZATION, RUN = UUID(int=1), uuid4()
WHO = {"organization_id": str(ORGANIZATION), "server_id": "notes"}
SAYS = Rejected(
    code=RejectionCode.SCHEMA, remote_name="x" * 200 + "\n", reason="the input schema is refused: their words"
)


@pytest.mark.parametrize(
    ("say", "name", "carries"),
    [
        (
            lambda teller: teller.connected(transport="http", tools=3, duration_ms=41),
            "mcp.server.connected",
            {"transport": "http", "tools": 3, "duration_ms": 41},
        ),
        (
            lambda teller: teller.disconnected(reason_code=Trouble.TOO_LARGE),
            "mcp.server.disconnected",
            {"reason_code": "too_large"},
        ),
        (
            lambda teller: teller.reauthenticated(run_id=RUN, scheme=AuthScheme.BEARER, outcome="renewed"),
            "mcp.server.reauthenticated",
            {"run_id": str(RUN), "scheme": "bearer", "outcome": "renewed"},
        ),
        (
            lambda teller: teller.catalog_changed(old_hash=None, new_hash="c1:2"),
            "mcp.catalog.changed",
            {"old_hash": None, "new_hash": "c1:2"},
        ),
        (
            lambda teller: teller.catalog_conflict(
                Conflict(name="mcp.notes.a", remote_names=("a", "A\u2028\U000e0041"))
            ),
            "mcp.catalog.conflict",
            {"tool_name": "mcp.notes.a", "remote_names": ["a", "A"]},
        ),
        (
            lambda teller: teller.tools_rejected([SAYS]),
            "mcp.tool.rejected",
            {"remote_name": "x" * 128, "reason_code": "schema"},
        ),
    ],
)
def test_an_event_is_one_record_with_ids_and_codes(
    say: Callable[[Teller], None], name: str, carries: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="agentic.events")
    plain = {*vars(logging.makeLogRecord({})), "message"}
    say(Teller(organization_id=ORGANIZATION, server_id="notes"))
    [record] = caplog.records
    extra = {key: value for key, value in vars(record).items() if key not in plain}
    assert extra == {"event_name": name, **WHO, **carries}
    assert record.getMessage() == f"{name} notes" and "their words" not in str(vars(record))
