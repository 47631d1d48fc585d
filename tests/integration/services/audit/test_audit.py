"""A record that somebody changed behind the platform's back is told, with where; one that nobody changed is whole."""

from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest
from psycopg.errors import RestrictViolation

from agentic.contract.errors import NotFound, NotPermitted
from agentic.contract.principal import Role
from agentic.runtime.agent.script import Turn
from agentic.services.audit.models import FindingKind, RunAudit
from agentic.testing import Call, Calls, Harness, Say, harness
from core_world import World, execute, rows

TURNS: list[Turn] = [
    Calls([Call("notes.save", {"text": text}) for text in ("milk", "bread", "salt")]),
    Calls([Call("mail.send", {"text": "done"})]),
    Say("Done."),
]
INSERT = (
    "insert into agent.effects (organization_id, run_id, kind, tool, scope, key, epoch, attempt)"
    " select organization_id, id, 'completed', 'notes.save', 'tool.notes.save', 'made up', 1, 1 from agent.runs where id = %(run)s"
)


@pytest.fixture
async def h(database: str) -> AsyncIterator[Harness]:
    world = World()
    async with harness(tools=[world.write(), world.send()], script=TURNS, database_url=database) as h:
        yield h


async def finished(h: Harness) -> UUID:
    """A run with four effects and five decisions, one of them a question."""
    run_id = await h.start()
    await h.settle(run_id)
    await h.decide(run_id)
    assert (await h.settle(run_id)).state == "succeeded"
    return run_id


async def tamper(h: Harness, *statements: str, **params: Any) -> None:
    """Change rows as the owner of the database can who first switches every trigger off."""
    async with await psycopg.AsyncConnection.connect(h.database_url) as connection:
        await connection.execute("set local session_replication_role = replica")
        for statement in statements:
            assert (await connection.execute(statement, params)).rowcount > 0, statement


async def audit(h: Harness, run_id: UUID) -> RunAudit:
    return await h.platform.audit.verify(h.organization_id, run_id)


def told(found: RunAudit) -> list[tuple[str, str, int | None, int | None]]:
    return [(finding.kind, finding.table, finding.first, finding.last) for finding in found.findings]


async def test_a_record_that_nobody_changed_is_whole_and_says_where_it_stands(h: Harness) -> None:
    run_id = await finished(h)
    found = await audit(h, run_id)
    assert (found.whole, found.findings) == (True, ())
    assert [(head.chain, head.lines) for head in found.heads] == [("policy_decisions", 5), ("effects", 4)]
    [last] = await rows(h, "select hash from agent.effects where run_id = %(id)s and seq = 4", id=run_id)
    assert found.heads[1].hash == last["hash"]


async def test_a_run_under_way_is_whole(h: Harness) -> None:
    run_id = await h.start()
    assert (await audit(h, run_id)).whole
    await h.settle(run_id)
    assert (await audit(h, run_id)).whole


EDITS = {
    "an edited word": (["update agent.effects set kind = 'released' where run_id = %(run)s and seq = 2"], ("altered", "effects", 2, 2)),
    "an edited time": (
        ["update agent.policy_decisions set decided_at = decided_at + interval '1 us' where run_id = %(run)s and seq = 1"],
        ("altered", "policy_decisions", 1, 1),
    ),
    "a value where there was none": (
        ["update agent.effects set note = 'as agreed' where run_id = %(run)s and seq = 4"], ("altered", "effects", 4, 4),
    ),
    "a line made to look older than its hash": (
        ["update agent.effects set hash_version = 1 where run_id = %(run)s and seq = 3"], ("altered", "effects", 3, 3),
    ),
    "a version that nobody wrote": (
        ["update agent.effects set hash_version = 7 where run_id = %(run)s and seq = 3"], ("altered", "effects", 3, 3),
    ),
    "a line taken out": (["delete from agent.policy_decisions where run_id = %(run)s and seq = 3"], ("missing", "policy_decisions", 3, 3)),
    "two lines taken out": (["delete from agent.effects where run_id = %(run)s and seq in (2, 3)"], ("missing", "effects", 2, 3)),
    "the beginning cut off": (["delete from agent.effects where run_id = %(run)s and seq <= 2"], ("missing", "effects", 1, 2)),
    "the end cut off": (["delete from agent.policy_decisions where run_id = %(run)s and seq >= 4"], ("missing", "policy_decisions", 4, 5)),
    "every line taken out": (["delete from agent.effects where run_id = %(run)s"], ("missing", "effects", 1, 4)),
    "a head taken out": (
        ["delete from agent.chain_heads where run_id = %(run)s and chain = 'effects'"], ("head_missing", "effects", None, None),
    ),
    "a line written past the chain": (
        [
            INSERT.replace(" run_id, kind", " run_id, seq, prev_hash, hash, hash_version, kind").replace(
                "id, 'completed'",
                "id, 5, (select hash from agent.effects where run_id = %(run)s and seq = 4), 'made up', 2, 'completed'",
            ),
            "update agent.effects e set hash = agent.chain_hash(e) where run_id = %(run)s and seq = 5",
        ],
        ("inserted", "effects", 5, 5),
    ),
    "a line rewritten, hash and all": (
        [
            "update agent.effects set attempt = 9 where run_id = %(run)s and seq = 2",
            "update agent.effects e set hash = agent.chain_hash(e) where run_id = %(run)s and seq = 2",
        ],
        ("unlinked", "effects", 3, 3),
    ),
    "the last line rewritten, hash and all": (
        [
            "update agent.policy_decisions set effect = 'deny' where run_id = %(run)s and seq = 5",
            "update agent.policy_decisions d set hash = agent.chain_hash(d) where run_id = %(run)s and seq = 5",
        ],
        ("head_differs", "policy_decisions", 5, 5),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", EDITS)
async def test_what_was_changed_is_told_with_its_table_and_line(h: Harness, name: str) -> None:
    run_id, other = await finished(h), await finished(h)
    statements, expected = EDITS[name]
    await tamper(h, *statements, run=run_id)
    found = await audit(h, run_id)
    assert not found.whole
    assert expected in told(found)
    elsewhere = [finding for finding in told(found) if finding[0] in ("altered", "missing", "unlinked")]
    assert elsewhere in ([], [expected]), "and nothing else of the chains is blamed"
    assert (await audit(h, other)).whole


async def test_lines_in_another_order_are_told_as_moved(h: Harness) -> None:
    run_id = await finished(h)
    swap = (
        "update agent.effects set seq = case seq when 2 then 3 when 3 then 2 else seq end + {} where run_id = %(run)s"
    )
    await tamper(h, swap.format(100), "update agent.effects set seq = seq - 100 where run_id = %(run)s", run=run_id)
    found = await audit(h, run_id)
    # the one now at 2 names line 2 of old, which stands at 3
    assert ("moved", "effects", 2, 2) in told(found)
    assert ("moved", "effects", 3, 3) in told(found)


async def test_lines_exchanged_between_runs_are_told_in_both(h: Harness) -> None:
    run_id, other = await finished(h), await finished(h)
    await tamper(
        h,
        "update agent.effects set run_id = case run_id when %(run)s then %(other)s::uuid else %(run)s::uuid end, seq = 102"
        " where run_id in (%(run)s, %(other)s) and seq = 2",
        "update agent.effects set seq = 2 where seq = 102",
        run=run_id,
        other=other,
    )
    for each in (run_id, other):
        assert ("altered", "effects", 2, 2) in told(await audit(h, each))


async def test_a_line_written_after_a_cut_does_not_hide_it(h: Harness) -> None:
    run_id = await finished(h)
    await tamper(h, "delete from agent.effects where run_id = %(run)s and seq = 4", run=run_id)
    await execute(h, INSERT, run=run_id)
    assert ("missing", "effects", 4, 4) in told(await audit(h, run_id))


async def test_a_line_that_the_chain_took_without_a_call_is_told(h: Harness) -> None:
    run_id = await finished(h)
    await execute(h, INSERT, run=run_id)
    found = await audit(h, run_id)
    assert [(finding.kind, finding.first) for finding in found.findings] == [
        (FindingKind.NO_DECISION, None),
        (FindingKind.NO_JOURNAL, 5),
    ]


async def test_a_journal_row_without_its_effect_is_told_by_its_reference(h: Harness) -> None:
    run_id = await finished(h)
    await tamper(
        h,
        "update agent.idempotency_keys set state = 'uncertain', completed_at = null, uncertain_at = now(), uncertain_reason = 'made up'"
        " where run_id = %(run)s and tool = 'mail.send'",
        run=run_id,
    )
    found = await audit(h, run_id)
    assert [(finding.kind, finding.tool) for finding in found.findings] == [
        (FindingKind.NO_EFFECT, "mail.send"),
        (FindingKind.NO_JOURNAL, "mail.send"),
    ]
    [call] = await h.uncertain(run_id)
    assert {finding.ref for finding in found.findings} == {call.ref}


async def test_an_effect_whose_decision_was_taken_out_of_a_rewritten_chain_is_told(h: Harness) -> None:
    run_id = await finished(h)
    await tamper(
        h,
        "delete from agent.policy_decisions where run_id = %(run)s and seq = 5",
        "update agent.chain_heads h set seq = 4, hash = (select hash from agent.policy_decisions d where d.run_id = h.run_id and seq = 4)"
        " where run_id = %(run)s and chain = 'policy_decisions'",
        run=run_id,
    )
    [finding] = (await audit(h, run_id)).findings
    assert (finding.kind, finding.table, finding.tool) == ("no_decision", "policy_decisions", "mail.send")


async def test_the_record_does_not_depend_on_the_time_zone_of_whoever_writes_or_reads(h: Harness) -> None:
    run_id = await finished(h)
    async with await psycopg.AsyncConnection.connect(h.database_url) as connection:
        await connection.execute("set local timezone = 'Asia/Kathmandu'")
        await connection.execute(INSERT, {"run": run_id})
        sound = await (
            await connection.execute(
                "select bool_and(hash = agent.chain_hash(e)) from agent.effects e where run_id = %s", (run_id,)
            )
        ).fetchone()
    assert sound == (True,)
    assert {finding.kind for finding in (await audit(h, run_id)).findings} == {"no_decision", "no_journal"}


async def test_a_column_added_later_changes_no_hash_of_before_and_is_hashed_from_then_on(h: Harness) -> None:
    run_id = await finished(h)
    async with await psycopg.AsyncConnection.connect(h.database_url) as connection:
        await connection.execute("alter table agent.effects add column added text")
    assert (await audit(h, run_id)).whole
    await tamper(h, "update agent.effects set added = 'later' where run_id = %(run)s and seq = 1", run=run_id)
    assert told(await audit(h, run_id)) == [("altered", "effects", 1, 1)]


async def test_columns_of_chained_tables_are_such_that_older_hashes_keep(h: Harness) -> None:
    """See ``agent.chain_text``: another kind of column takes a new version of the hash."""
    added = await rows(
        h,
        "select table_name || '.' || column_name as name from information_schema.columns"
        " where table_schema = 'agent' and table_name in ('effects', 'policy_decisions')"
        " and (data_type in ('json', 'jsonb') or is_nullable = 'NO' or column_default is not null)",
    )
    first = {
        "policy_decisions": "id organization_id run_id seq tool effect rule_id rule_version reason context_trust decided_at",
        "effects": "id organization_id run_id seq kind tool scope key epoch attempt at",
    }
    known = {
        f"{table}.{column}"
        for table, columns in first.items()
        for column in [*columns.split(), "prev_hash", "hash", "hash_version"]
    }
    assert {row["name"] for row in added} == known


async def test_a_head_is_moved_by_its_chain_alone(h: Harness) -> None:
    run_id = await finished(h)
    for statement in (
        "update agent.chain_heads set seq = seq + 1 where run_id = %(run)s",
        "delete from agent.chain_heads where run_id = %(run)s",
    ):
        with pytest.raises(RestrictViolation):
            await execute(h, statement, run=run_id)
    assert (await audit(h, run_id)).whole


async def test_a_run_that_retention_takes_leaves_no_head_behind(h: Harness) -> None:
    run_id = await finished(h)
    async with await psycopg.AsyncConnection.connect(h.database_url) as connection:
        await connection.execute("set local agent.retention = 'on'")
        await connection.execute("delete from agent.runs where id = %s", (run_id,))
    assert await rows(h, "select * from agent.chain_heads where run_id = %(run)s", run=run_id) == []


async def everything(h: Harness, **given: Any) -> Sequence[RunAudit]:
    return [found async for found in h.platform.audit.verify_all(h.organization_id, **given)]


async def test_all_runs_are_checked_over_pages_or_those_since_a_time(
    h: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agentic.services.audit.service.PAGE_RUNS", 2)
    runs = [await h.start() for _ in range(4)]
    done = await finished(h)
    assert sorted(found.run_id for found in await everything(h)) == sorted([*runs, done])
    await execute(
        h, "update agent.runs set created_at = created_at - interval '2 days' where id = any(%(runs)s)", runs=runs
    )
    since = datetime.now(UTC) - timedelta(days=1)
    assert [found.run_id for found in await everything(h, since=since)] == [done]
    await tamper(h, "delete from agent.effects where run_id = %(run)s and seq = 4", run=done)
    assert [found.run_id for found in await everything(h) if not found.whole] == [done]


@pytest.mark.guarantee("T1", "A5")
async def test_only_an_operator_of_the_organization_may_ask(h: Harness) -> None:
    run_id = await h.start()
    elsewhere, member, operator = uuid4(), uuid4(), uuid4()
    await h.platform.approval_store.put_member(h.organization_id, member, Role.APPROVER)
    await h.platform.approval_store.put_member(h.organization_id, operator, Role.OPERATOR)
    with pytest.raises(NotPermitted):
        await h.platform.audit.verify(h.organization_id, run_id, user_id=member)
    assert (await h.platform.audit.verify(h.organization_id, run_id, user_id=operator)).whole
    with pytest.raises(NotFound):
        await h.platform.audit.verify(elsewhere, run_id)
    assert [found async for found in h.platform.audit.verify_all(elsewhere)] == []
