"""What has been kept long enough goes, in bounded batches and whole trees; nothing of a run that goes on does (ADR 0031)."""

from decimal import Decimal
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest
from pydantic import ValidationError

from agentic.contract.errors import RetryLater
from agentic.services.retention.models import Removed, RetentionPeriods
from agentic.services.retention.service import Retention
from agentic.storage.retention_store import PostgresRetentionStore
from agentic.testing import Call, Calls, Harness, Say, harness
from core_world import World, execute, rows

MAIL = Calls([Call("mail.send", {"text": "hello"})])
TABLES = (
    "run_messages", "run_waits", "proposals", "approvals", "policy_decisions", "effects", "chain_heads", "idempotency_keys", "spans",
    "ai_usage_log", "usage_reservations", "artifacts", "run_events", "run_event_heads",
)  # fmt: skip
NOTHING = Removed()


def retention(h: Harness, **given: Any) -> Retention:
    return Retention(PostgresRetentionStore(h.platform.database), **given)


async def age(h: Harness, run_id: UUID, days: int) -> None:
    """Let the run have ended so long ago."""
    await execute(
        h,
        "update agent.runs set finished_at = finished_at - make_interval(days => %(days)s) where id = %(run_id)s",
        days=days,
        run_id=run_id,
    )


async def left(h: Harness, run_id: UUID) -> set[str]:
    """The tables that hold something of a run."""
    found = {"runs"} if await rows(h, "select from agent.runs where id = %(id)s", id=run_id) else set()
    for table in TABLES:
        if await rows(h, f"select from agent.{table} where run_id = %(id)s limit 1", id=run_id):
            found.add(table)
    return found


async def asked_and_sent(h: Harness) -> UUID:
    run_id = await h.start()
    await h.settle(run_id)
    await h.decide(run_id)
    assert (await h.settle(run_id)).state == "succeeded"
    return run_id


async def test_an_old_run_goes_with_everything_below_it_and_a_younger_one_stays(database: str) -> None:
    world = World()
    async with harness(tools=[world.send()], script=[MAIL, Say("Sent.")], database_url=database) as h:
        old, young = await asked_and_sent(h), await asked_and_sent(h)
        await age(h, old, 396)
        await age(h, young, 394)
        before = await left(h, young)
        assert {
            "runs",
            "run_messages",
            "approvals",
            "effects",
            "idempotency_keys",
            "run_events",
            "chain_heads",
            "spans",
        } <= before
        assert (await retention(h).preview()).runs == 1
        assert await left(h, old) == before
        assert (await retention(h).sweep()).runs == 1
        assert await left(h, old) == set()
        assert await left(h, young) == before
        assert await retention(h).sweep() == NOTHING
        with pytest.raises(psycopg.errors.RestrictViolation):  # the permission ended with its transaction
            await execute(h, "delete from agent.effects")


@pytest.mark.parametrize("state", ["queued", "running", "parked"])
async def test_a_run_that_has_not_ended_is_never_touched_however_old_it_is(database: str, state: str) -> None:
    world = World()
    async with harness(tools=[world.send()], script=[MAIL, Say("Sent.")], database_url=database) as h:
        run_id = await h.start()
        if state == "running":
            assert await h.platform.run_store.take(h.organization_id, run_id, lease_s=60)
        if state == "parked":
            await h.settle(run_id)
        await execute(h, "update agent.runs set created_at = created_at - interval '3 years'")
        await _older(h, "run_events", "at", 1000)
        before = await left(h, run_id)
        assert await retention(h).sweep() == NOTHING
        assert await left(h, run_id) == before


async def test_a_tree_goes_whole_or_not_at_all(database: str) -> None:
    async with harness(tools=[], script=[Say("Hi.")], database_url=database) as h:
        root, child = await h.start(), await h.start()
        for run_id in (root, child):
            await h.settle(run_id)
        await execute(
            h,
            "update agent.runs set root_run_id = %(root)s, parent_run_id = %(root)s, depth = 1 where id = %(child)s",
            root=root,
            child=child,
        )
        await age(h, root, 400)
        assert (await retention(h).sweep()).runs == 0
        await age(h, child, 400)
        assert (await retention(h).sweep()).runs == 2


async def test_a_run_with_a_call_whose_outcome_nobody_knows_waits_for_its_operator(database: str) -> None:
    async with harness(tools=[], script=[Say("Hi.")], database_url=database) as h:
        run_id = await h.start()
        await h.settle(run_id)
        await age(h, run_id, 400)
        await execute(h, "update agent.runs set has_uncertain = true")
        assert (await retention(h).sweep()).runs == 0
        await execute(h, "update agent.runs set has_uncertain = false")
        assert (await retention(h).sweep()).runs == 1


class Bodies:
    """An object store that notes what it forgets, or is away."""

    def __init__(self, h: Harness) -> None:
        self._h = h
        self.away = False
        self.forgotten: list[tuple[UUID, bool]] = []

    async def forget_run(self, organization_id: UUID, run_id: UUID) -> None:
        if self.away:
            raise RetryLater("the object store is away")
        there = bool(await rows(self._h, "select from agent.runs where id = %(id)s", id=run_id))
        self.forgotten.append((run_id, there))


async def _with_artifact_elsewhere(h: Harness) -> UUID:
    run_id = await h.start()
    await h.settle(run_id)
    await age(h, run_id, 400)
    await execute(
        h,
        "insert into agent.artifacts (id, organization_id, run_id, trust, sha256, size_bytes, complete, place) "
        "values (gen_random_uuid(), %(organization_id)s, %(run_id)s, 'external', repeat('0', 64), 1, true, 'store')",
        organization_id=h.organization_id,
        run_id=run_id,
    )
    return run_id


async def test_bytes_in_an_object_store_go_before_the_rows_that_name_them(database: str) -> None:
    async with harness(tools=[], script=[Say("Hi.")], database_url=database) as h:
        run_id = await _with_artifact_elsewhere(h)
        bodies = Bodies(h)
        bodies.away = True
        assert await retention(h, bodies=bodies).sweep() == Removed(left=True)
        assert "artifacts" in await left(h, run_id)
        bodies.away = False
        assert (await retention(h, bodies=bodies).sweep()).runs == 1
        assert bodies.forgotten == [(run_id, True)]
        assert await left(h, run_id) == set()


async def test_without_the_object_store_the_runs_that_need_it_stay(database: str) -> None:
    async with harness(tools=[], script=[Say("Hi.")], database_url=database) as h:
        run_id = await _with_artifact_elsewhere(h)
        assert (await retention(h).preview()).runs == 0
        assert await retention(h).sweep() == NOTHING
        assert "artifacts" in await left(h, run_id)


async def test_events_and_sent_nudges_go_batch_by_batch_and_pending_ones_stay(database: str) -> None:
    async with harness(tools=[], script=[Say("Hi.")], database_url=database) as h:
        run_id = await h.start()
        await h.settle(run_id)
        [events] = await rows(h, "select count(*) as n from agent.run_events")
        await _older(h, "run_events", "at", 91)
        await execute(h, "update agent.outbox set sent_at = sent_at - interval '8 days'")
        await execute(
            h,
            "insert into agent.outbox (id, organization_id, run_id, name, data, created_at) "
            "values (gen_random_uuid(), %(o)s, %(r)s, 'agentic/run.nudged.v1', '{}', clock_timestamp() - interval '1 year')",
            o=h.organization_id,
            r=run_id,
        )
        first = await retention(h, rows=2, batches=1).sweep()
        assert (first.events, first.left) == (2, True)
        rest = await retention(h, rows=2).sweep()
        assert (rest.events, first.outbox + rest.outbox) == (events["n"] - 2, 1)
        assert [row["state"] for row in await rows(h, "select state from agent.outbox")] == ["pending"]
        page = await h.platform.events.events(h.organization_id, run_id, after=0, limit=10)
        assert (page.events, page.over) == ([], True)


async def test_months_of_spans_are_dropped_but_for_one_that_an_open_run_needs(database: str) -> None:
    async with harness(tools=[], script=[Say("Hi.")], database_url=database) as h:
        ended, going = await h.start(), await h.start()
        await h.settle(ended)
        for month, run_id in (("202001", ended), ("202002", going), ("202003", ended)):
            day = f"{month[:4]}-{month[4:]}-01"
            await execute(
                h,
                f"create table agent.spans_{month} partition of agent.spans for values "
                f"from ('{day}T00:00:00Z') to ('{day}T00:00:00Z'::timestamptz + interval '1 month')",
            )
            await _span(h, run_id, f"{day}T12:00:00Z")
        await _span(h, ended, "2019-05-05T12:00:00Z")
        await _span(h, going, "2019-05-05T12:00:00Z")
        assert (await retention(h).preview()).span_partitions == 2
        removed = await retention(h).sweep()
        assert (removed.span_partitions, removed.spans, removed.left) == (2, 1, False)
        old = "select run_id, started_at::date::text as day from agent.spans where started_at < '2021-01-01' order by started_at"
        assert [(row["run_id"], row["day"]) for row in await rows(h, old)] == [
            (going, "2019-05-05"),
            (going, "2020-02-01"),
        ]


async def test_a_partition_that_others_hold_waits_for_the_next_sweep(database: str) -> None:
    async with harness(tools=[], script=[Say("Hi.")], database_url=database) as h:
        await execute(
            h,
            "create table agent.spans_202001 partition of agent.spans for values from ('2020-01-01T00:00Z') to ('2020-02-01T00:00Z')",
        )
        async with await psycopg.AsyncConnection.connect(database) as reader:
            await reader.execute("select from agent.spans limit 1")
            removed = await retention(h).sweep()
            assert (removed.span_partitions, removed.left) == (0, True)
            await reader.rollback()
        assert await retention(h).sweep() == Removed(span_partitions=1)


async def test_counts_and_claims_of_deliveries_go_by_their_age_and_those_of_runs_stay(database: str) -> None:
    async with harness(tools=[], script=[Say("Hi.")], database_url=database) as h:
        run_id = await h.start()
        for days in (0, 89, 91, 400):
            await execute(
                h,
                "insert into agent.webhook_drops (provider, reason, day) "
                "values ('courier', 'duplicate', (clock_timestamp() at time zone 'UTC')::date - %(days)s::int)",
                days=days,
            )
        for scope, of_run, days in (
            ("webhook.courier", None, 91),
            ("webhook.courier", None, 89),
            ("webhook.courier", run_id, 91),
            ("tool.notes", None, 91),
        ):
            await execute(
                h,
                "insert into agent.idempotency_keys (organization_id, scope, key, state, request_hash, run_id, idempotency_class, "
                "created_at, completed_at, output, outcome_status) values (%(o)s, %(scope)s, %(key)s, 'completed', 'h', %(run)s, "
                "'idempotent', clock_timestamp() - make_interval(days => %(days)s), clock_timestamp(), '', 'ok')",
                o=h.organization_id,
                scope=scope,
                key=str(uuid4()),
                run=of_run,
                days=days,
            )
        assert await retention(h).preview() == Removed(deliveries=3)
        assert await retention(h, rows=1).sweep() == Removed(deliveries=3)
        assert await retention(h).sweep() == NOTHING
        assert len(await rows(h, "select from agent.webhook_drops")) == 2
        left_ = await rows(h, "select scope, run_id from agent.idempotency_keys order by scope, run_id")
        assert [(row["scope"], row["run_id"]) for row in left_] == [
            ("tool.notes", None),
            ("webhook.courier", run_id),
            ("webhook.courier", None),
        ]


def test_spans_and_events_are_not_kept_longer_than_their_runs() -> None:
    with pytest.raises(ValidationError, match="keep runs at least as long"):
        RetentionPeriods(runs_days=30)
    assert RetentionPeriods(runs_days=30, spans_days=30, events_days=7).runs_days == 30


# -- sums by day ----------------------------------------------------------------------------------------------------------------------


async def _line(h: Harness, days_ago: int, cost: str | None, *, unit: str = "request") -> None:
    await execute(
        h,
        "insert into agent.ai_usage_log (id, organization_id, root_run_id, run_id, kind, provider, item, quantity, unit, cost, at) "
        "values (%(id)s, %(o)s, %(id)s, %(id)s, 'tool', 'vendor', 'tool', 1.5, %(unit)s, %(cost)s, "
        "date_trunc('day', clock_timestamp(), 'UTC') - make_interval(days => %(days)s))",
        id=uuid4(),
        o=h.organization_id,
        unit=unit,
        cost=None if cost is None else Decimal(cost),
        days=days_ago,
    )


async def _sums(h: Harness) -> list[tuple[int, str, int, Decimal, Decimal, int]]:
    found = await rows(
        h,
        "select (clock_timestamp() at time zone 'UTC')::date - day as ago, unit, lines, quantity, cost, unpriced "
        "from agent.ai_usage_daily where organization_id = %(o)s order by day desc, unit",
        o=h.organization_id,
    )
    return [(row["ago"], row["unit"], row["lines"], row["quantity"], row["cost"], row["unpriced"]) for row in found]


@pytest.mark.guarantee("M3")
async def test_usage_is_summed_by_day_and_a_late_line_is_in_the_next_sum(database: str) -> None:
    async with harness(tools=[], script=[Say("Hi.")], database_url=database) as h:
        await _line(h, 0, "0.1")
        await _line(h, 1, "0.000000000000000000000000000001")
        await _line(h, 1, None)
        await _line(h, 1, "2", unit="credit")
        rollup = h.platform.rollup
        assert await rollup.compute() == 3
        assert await rollup.compute() == 0
        tiny = Decimal("0.000000000000000000000000000001")
        assert await _sums(h) == [
            (0, "request", 1, Decimal("1.5"), Decimal("0.1"), 0),
            (1, "credit", 1, Decimal("1.5"), Decimal(2), 0),
            (1, "request", 2, Decimal(3), tiny, 1),
        ]
        await _line(h, 1, "1")
        assert await rollup.compute() == 1
        assert (await _sums(h))[-1] == (1, "request", 3, Decimal("4.5"), Decimal("1.000000000000000000000000000001"), 1)


async def test_the_sums_of_a_day_stay_when_its_lines_go_with_their_runs(database: str) -> None:
    async with harness(tools=[], script=[Say("Hi.")], database_url=database) as h:
        await _line(h, 1, "1")
        await h.platform.rollup.compute()
        await h.platform.database.atomic(
            [("select set_config('agent.retention', 'on', true)", {}), ("delete from agent.ai_usage_log", {})]
        )
        assert await h.platform.rollup.compute() == 0
        assert await _sums(h) == [(1, "request", 1, Decimal("1.5"), Decimal(1), 0)]


@pytest.mark.guarantee("M3")
async def test_whatever_takes_holds_or_bounds_money_works_without_the_sums(database: str) -> None:
    world = World()
    await _without_sums(database)
    async with harness(tools=[world.send()], script=[MAIL, Say("Sent.")], database_url=database) as h:
        run_id = await asked_and_sent(h)
        assert (await h.platform.usage.of_run(h.organization_id, run_id, limit=10)).run_id == run_id
        await h.platform.usage.of_day(h.organization_id)
        await h.platform.sweeper.runs()
        readers = await rows(h, "select proname from pg_proc where prosrc ~ 'ai_usage_daily'")
        assert readers == []


async def _without_sums(database: str) -> None:
    async with await psycopg.AsyncConnection.connect(database, autocommit=True) as connection:
        await connection.execute("drop table agent.ai_usage_daily")


async def _older(h: Harness, table: str, column: str, days: int) -> None:
    await h.platform.database.atomic(
        [
            ("select set_config('agent.retention', 'on', true)", {}),
            (f"update agent.{table} set {column} = {column} - make_interval(days => {days})", {}),
        ]
    )


async def _span(h: Harness, run_id: UUID, at: str) -> None:
    await execute(
        h,
        "insert into agent.spans (id, organization_id, run_id, kind, name, started_at) values (%(id)s, %(o)s, %(run_id)s, 'wait', 'x', %(at)s)",
        id=uuid4(),
        o=h.organization_id,
        run_id=run_id,
        at=at,
    )
