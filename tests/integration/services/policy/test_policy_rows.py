"""Rules as rows: stored, superseded, counted by version, kept apart by organization."""

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest

from agentic.contract.errors import Conflict, NotFound, NotPermitted
from agentic.contract.principal import Role
from agentic.contract.trust import Trust
from agentic.services.policy import RuleDraft, RuleRefused
from agentic.testing import Call, Calls, Harness, Say, harness
from core_world import World, execute, rows

ASK = RuleDraft.model_validate({"name": "notes-ask", "effect": "require_approval", "tool": "notes.*"})


@asynccontextmanager
async def office(database: str) -> AsyncIterator[Harness]:
    async with harness(tools=[World().write()], script=[Say("Done.")], database_url=database) as h:
        yield h


def changed(draft: RuleDraft, **fields: Any) -> RuleDraft:
    return RuleDraft.model_validate({**draft.model_dump(), **fields})


async def test_a_saved_rule_is_the_next_version_of_its_name_and_the_earlier_ones_stay(database: str) -> None:
    async with office(database) as h:
        policy, whose = h.platform.policy, h.organization_id
        first = (await policy.save(ASK, organization_id=whose, user_id=h.user_id)).rule
        second = (
            await policy.save(
                changed(ASK, condition="args.text == 'milk'", risk=["low"]), organization_id=whose, user_id=h.user_id
            )
        ).rule
        assert (first.version, second.version, second.id) == (1, 2, first.id)
        retired = await policy.retire("notes-ask", organization_id=whose, user_id=h.user_id)
        assert retired.version == 2
        third = (await policy.save(ASK, organization_id=whose)).rule
        assert (third.version, third.id, third.created_by) == (3, first.id, None)
        kept = await rows(
            h, "select version, superseded_at is null as live, superseded_by from agent.policy_rules order by version"
        )
        assert [(row["version"], row["live"]) for row in kept] == [(1, False), (2, False), (3, True)]
        assert [row["superseded_by"] for row in kept] == [h.user_id, h.user_id, None]
        stored = [rule for rule in await policy.rules(whose) if rule.name == "notes-ask"]
        assert stored == [third]


async def test_every_change_of_a_rule_raises_the_version_that_calls_compare(database: str) -> None:
    async with office(database) as h:

        async def versions() -> dict[UUID, int]:
            return {
                row["scope"]: row["version"]
                for row in await rows(h, "select scope, version from agent.policy_versions")
            }

        policy, whose, platform = h.platform.policy, h.organization_id, UUID(int=0)
        await policy.save(ASK, organization_id=whose)
        seen = [(await versions())[whose]]
        await policy.save(ASK, organization_id=whose)
        seen.append((await versions())[whose])
        await execute(h, "update agent.policy_rules set reason = 'by hand' where superseded_at is null")
        seen.append((await versions())[whose])
        await policy.retire("notes-ask", organization_id=whose)
        seen.append((await versions())[whose])
        assert seen == sorted(set(seen))
        assert platform not in await versions()
        await policy.save(ASK, organization_id=None)
        assert (await versions())[platform] == 1
        assert (await versions())[whose] == seen[-1]


@pytest.mark.guarantee("T1")
async def test_an_organizations_rule_is_its_own_and_a_platform_rule_is_everybodys(database: str) -> None:
    async with office(database) as h:
        policy, other = h.platform.policy, uuid4()
        await policy.save(ASK, organization_id=h.organization_id)
        await policy.save(changed(ASK, name="everywhere"), organization_id=None)
        mine = {rule.rule_id for rule in await policy.rules(h.organization_id)}
        theirs = {rule.rule_id for rule in await policy.rules(other)}
        assert mine - theirs == {"rule:notes-ask"}
        assert "rule:platform/everywhere" in theirs
        with pytest.raises(NotFound):
            await policy.retire("notes-ask", organization_id=other)
        with pytest.raises(NotFound):
            await policy.retire("everywhere", organization_id=h.organization_id)


async def test_only_an_admin_of_the_organization_changes_its_rules_and_no_person_the_platforms(database: str) -> None:
    async with office(database) as h:
        policy, operator = h.platform.policy, uuid4()
        await h.platform.approval_store.put_member(h.organization_id, operator, Role.OPERATOR)
        await policy.save(ASK, organization_id=h.organization_id, user_id=h.user_id)
        for person, whose in ((operator, h.organization_id), (uuid4(), h.organization_id), (h.user_id, None)):
            with pytest.raises(NotPermitted, match="admin"):
                await policy.save(ASK, organization_id=whose, user_id=person)
            with pytest.raises(NotPermitted, match="admin"):
                await policy.retire("notes-ask", organization_id=whose, user_id=person)
        [live] = [rule for rule in await policy.rules(h.organization_id) if rule.name == "notes-ask"]
        assert live.version == 1


async def test_a_condition_that_does_not_fit_a_tool_is_refused_with_the_reason_and_nothing_is_stored(
    database: str,
) -> None:
    async with office(database) as h:
        for condition, words in (
            (
                "args.text > 5",
                r"notes.save: line 1, column \d+: found no matching overload for '_>_' applied to '\(string, int\)'",
            ),
            ("args.txt == 'x'", "it has no argument txt; it has text"),
            ("facts.is_new", "it does not declare the fact is_new"),
            ("args.text", "not true or false"),
        ):
            with pytest.raises(RuleRefused, match=words) as refused:
                await h.platform.policy.save(changed(ASK, condition=condition), organization_id=h.organization_id)
            assert "the rule notes-ask cannot be saved" in str(refused.value)
        assert await rows(h, "select * from agent.policy_rules") == []


async def test_savers_of_one_name_at_once_follow_each_other_and_one_version_is_live(database: str) -> None:
    async with office(database) as h:
        policy, whose = h.platform.policy, h.organization_id
        async with asyncio.timeout(30):
            saved = await asyncio.gather(*(policy.save(ASK, organization_id=whose) for _ in range(12)))
        assert sorted(one.rule.version for one in saved) == list(range(1, 13))
        live = await rows(h, "select version from agent.policy_rules where superseded_at is null")
        assert [row["version"] for row in live] == [12]


@pytest.mark.parametrize(
    "columns",
    [
        "condition = repeat('x', 4097)",
        "condition = ''",
        "effect = 'warn'",
        "side_effects = '{explode}'",
        "side_effects = '{}'",
        "risk = '{low,huge}'",
        "covers_external = true",
        "four_eyes = true, effect = 'deny'",
    ],
)
async def test_the_database_refuses_a_row_that_the_engine_could_not_read(database: str, columns: str) -> None:
    async with office(database) as h:
        await h.platform.policy.save(ASK, organization_id=h.organization_id)
        with pytest.raises(psycopg.errors.CheckViolation):
            await execute(h, f"update agent.policy_rules set {columns}")


@pytest.mark.guarantee("T1")
async def test_a_users_key_reads_and_writes_no_rule(database: str) -> None:
    async with office(database) as h:
        await h.platform.policy.save(ASK, organization_id=h.organization_id)
        secured = await rows(
            h,
            "select relname, relrowsecurity from pg_class where relname in ('policy_rules', 'policy_versions') order by relname",
        )
        assert [row["relrowsecurity"] for row in secured] == [True, True]
        for role in ("anon", "authenticated"):
            [may] = await rows(
                h,
                "select bool_or(has_table_privilege(%(role)s, t, p)) as may from unnest(array['agent.policy_rules', 'agent.policy_versions']) t, "
                "unnest(array['select', 'insert', 'update', 'delete']) p",
                role=role,
            )
            assert may["may"] is False
        async with await psycopg.AsyncConnection.connect(database) as connection:
            await connection.execute("set role service_role")
            saved = await connection.execute("update agent.policy_rules set reason = 'as the service'")
            assert saved.rowcount == 1


async def test_an_explanation_says_what_every_rule_said_and_which_floor_there_is(database: str) -> None:
    async with office(database) as h:
        policy, whose = h.platform.policy, h.organization_id
        for draft in (
            changed(ASK, condition="args.text == 'milk'", reason="milk is dear"),
            RuleDraft.model_validate({"name": "crm-only", "effect": "deny", "tool": "crm.*"}),
            RuleDraft.model_validate({"name": "no-essays", "effect": "deny", "condition": "size(args.text) > 1000"}),
            RuleDraft.model_validate({"name": "numbers", "effect": "allow", "condition": "int(args.text) > 5"}),
        ):
            await policy.save(draft, organization_id=whose)
        told = await policy.explain(whose, "notes.save", '{"text": "milk"}', context_trust=Trust.EXTERNAL)
        assert (told.effect, told.rule_id, told.reason) == ("require_approval", "rule:notes-ask", "milk is dear")
        assert told.floor is None  # a write of low risk
        said = {rule.rule_id: (rule.said, rule.counts) for rule in told.rules}
        assert said["rule:notes-ask"] == ("holds", True)
        assert said["rule:crm-only"] == ("does not speak", False)
        assert said["rule:no-essays"] == ("does not hold", False)
        assert said["rule:numbers"] == ("failed", False)
        assert next(rule.why for rule in told.rules if rule.rule_id == "rule:crm-only") == "it is about crm.*"
        frozen = await policy.explain(whose, "notes.save", '{"text": "tea"}', environment="frozen")
        assert (frozen.effect, frozen.rule_id, frozen.floor) == ("deny", "floor.frozen", "floor.frozen")
        with pytest.raises(NotFound, match=r"notes\.sav"):
            await policy.explain(whose, "notes.sav", "{}")
        with pytest.raises(Conflict, match="text"):
            await policy.explain(whose, "notes.save", "{}")


_OTHER_PROCESS = """
import asyncio, json, sys
from uuid import UUID
from agentic.services.policy import RuleDraft
from agentic.storage.database import Database
from agentic.storage.policy_store import PostgresPolicyStore
from agentic.storage.pool import open_pool

async def main():
    url, organization, draft = sys.argv[1:]
    async with open_pool(url, max_size=1) as pool:
        store = PostgresPolicyStore(Database(pool))
        await store.save(RuleDraft.model_validate_json(draft), organization_id=UUID(organization), user_id=None)

asyncio.run(main())
"""


@pytest.mark.guarantee("D1")
async def test_a_rule_saved_by_another_process_counts_at_the_next_call_of_this_one(database: str) -> None:
    world = World()
    script = [Calls([Call("notes.save", {"text": f"{n}"})]) for n in range(2)]
    async with harness(tools=[world.write()], script=[*script, Say("Done.")], database_url=database) as h:

        async def save_elsewhere() -> None:
            rule = json.dumps({"name": "stop", "effect": "deny", "tool": "notes.save"})
            command = [sys.executable, "-c", _OTHER_PROCESS, database, str(h.organization_id), rule]
            await asyncio.to_thread(subprocess.run, command, check=True, timeout=60)

        first = await h.start()
        assert (await h.settle(first)).state == "succeeded"
        assert world.of("notes.save") == ["0", "1"]
        await save_elsewhere()
        second = await h.start()
        assert (await h.settle(second)).state == "succeeded"
        assert world.of("notes.save") == ["0", "1"]
        decisions = (await h.tree(second)).decisions
        assert {(row["effect"], row["rule_id"], row["rule_version"]) for row in decisions} == {("deny", "rule:stop", 1)}
