"""``agentic db retain``: says what would go, removes it, and refuses periods that cannot be."""

from typing import TYPE_CHECKING

import psycopg
import pytest

if TYPE_CHECKING:
    from tests.integration.cli.conftest import Seed, Shell

pytestmark = pytest.mark.timeout(300)  # each command is a process of its own
KINDS = ("runs", "span_partitions", "spans", "events", "outbox")


def test_it_says_what_would_go_then_removes_it(seed: "Seed", shell: "Shell", database: str) -> None:
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("update agent.outbox set state = 'sent', sent_at = clock_timestamp() - interval '3 days'")
        sent = connection.execute("select count(*) from agent.outbox").fetchone()
    assert sent is not None
    assert sent[0] > 0
    would = shell("db", "retain", "--dry-run", "--outbox-days", "2", "--json")
    nothing = dict.fromkeys(KINDS, 0)
    assert would.value == {**nothing, "outbox": sent[0], "left": False, "dry_run": True}, would.err
    assert shell("db", "retain", "--json").value == {**nothing, "left": False, "dry_run": False}
    done = shell("db", "retain", "--outbox-days", "2")
    assert (done.code, f"removed {sent[0]} outbox" in done.err) == (0, True)
    assert shell("runs", "show", seed.run).code == 0


def test_periods_that_cannot_be_are_refused(seed: "Seed", shell: "Shell") -> None:
    refused = shell("db", "retain", "--runs-days", "30")
    assert (refused.code, "keep runs at least as long" in refused.err) == (2, True)
