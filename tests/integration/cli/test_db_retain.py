"""``agentic db retain``: says what would go, removes it, and refuses periods that cannot be."""

from typing import TYPE_CHECKING

import psycopg
import pytest

if TYPE_CHECKING:
    from tests.integration.cli.conftest import Seed, Shell

pytestmark = pytest.mark.timeout(300)  # each command is a process of its own
KINDS = ("runs", "span_partitions", "spans", "events", "outbox", "deliveries")


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


def test_usage_is_told_by_day_once_it_is_summed(seed: "Seed", shell: "Shell", database: str) -> None:
    assert "no sums of these days" in shell("usage", "--days", "3").err
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute(
            "insert into agent.ai_usage_log (id, organization_id, root_run_id, run_id, kind, provider, item, quantity, unit, cost) "
            "values (gen_random_uuid(), %s, %s, %s, 'tool', 'post.example', 'letters.post', 2, 'stamp', 0.10)",
            (str(seed.organization), seed.run, seed.run),
        )
    assert shell("db", "retain").code == 0
    [stamps] = [one for one in shell("usage", "--days", "1", "--json").value if one["unit"] == "stamp"]
    assert (stamps["quantity"], stamps["cost"], stamps["lines"], stamps["unpriced"]) == ("2", "0.10", 1, 0)
    assert "letters.post" in shell("usage", "--days", "3").out
    assert shell("usage", "--days", "3", "--day", "2001-01-01", "--json").value == []
    assert shell("usage", seed.run, "--days", "3").code == 2


def test_periods_that_cannot_be_are_refused(seed: "Seed", shell: "Shell") -> None:
    refused = shell("db", "retain", "--runs-days", "30")
    assert (refused.code, "keep runs at least as long" in refused.err) == (2, True)
    longer_than_any_calendar = shell("db", "retain", "--dry-run", "--runs-days", "999999999999")
    assert (longer_than_any_calendar.code, "--runs-days: " in longer_than_any_calendar.err) == (2, True)
