"""Several workers and several people at one server at the same moment: one of each change, and nothing half done."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from typing import Any

import pytest

from agentic.contract.errors import Conflict
from agentic.services.mcp.config import Classification, HttpEndpoint
from agentic.services.mcp.records import Observation, ServerState
from agentic.services.tools.models import IdempotencyClass, Risk, SideEffects
from mcp_rows import NOTES, ServerRows, catalog, server_rows

WORKERS = 8


@pytest.fixture
async def rows(database: str) -> AsyncIterator[ServerRows]:
    async with server_rows(database) as made:
        yield made


async def together(*steps: Callable[[], Awaitable[Any]]) -> list[Any]:
    """Begin them at the same moment; what each returned or raised."""
    barrier = asyncio.Barrier(len(steps))

    async def one(step: Callable[[], Awaitable[Any]]) -> Any:
        await barrier.wait()
        return await step()

    async with asyncio.timeout(30):
        return await asyncio.gather(*(one(step) for step in steps), return_exceptions=True)


async def test_of_many_who_register_a_name_one_has_it(rows: ServerRows) -> None:
    ends = await together(
        *[lambda: rows.store.register(rows.organization_id, NOTES, connection_id=None, user_id=rows.admin)] * WORKERS
    )
    assert sum(isinstance(end, Conflict) for end in ends) == WORKERS - 1
    assert len(await rows.store.servers(rows.organization_id)) == 1


async def test_workers_that_see_the_same_catalog_write_one_generation(rows: ServerRows) -> None:
    server = await rows.active("a")

    def look() -> Awaitable[Observation]:
        return rows.store.observe(
            rows.organization_id,
            "notes",
            catalog("a", "b"),
            resources=False,
            endpoint_revision=server.endpoint_revision,
        )

    seen = await together(*[look] * WORKERS)
    assert sum(each.new_generation for each in seen) == 1
    assert sorted(each.previous_hash == server.offered_hash for each in seen) == [False] * (WORKERS - 1) + [True]
    assert {each.server.revision for each in seen} == {server.revision + 1}
    assert len(await rows.store.generations(rows.organization_id, "notes")) == 2
    assert len(await rows.store.declarations(rows.organization_id, "notes", "b")) == 1


async def test_workers_that_see_different_catalogs_leave_one_of_them_whole(rows: ServerRows) -> None:
    server = await rows.active("a", "b", "c")
    shown = [("a",), ("b",), ("a", "b"), ("c", "d"), ()]

    async def look(tools: tuple[str, ...]) -> Any:
        return await rows.store.observe(
            rows.organization_id, "notes", catalog(*tools), resources=False, endpoint_revision=server.endpoint_revision
        )

    ends = await together(*(partial(look, tools) for tools in shown))
    assert all(isinstance(end, Observation) for end in ends)
    now = await rows.store.get(rows.organization_id, "notes")
    offered = tuple(tool.remote_name for tool in now.offered.tools)
    assert offered in shown and now.offered == catalog(*offered)
    assert now.server.revision == server.revision + len(shown)
    assert await rows.off() == {"a", "b", "c"} - set(offered)


async def test_an_approval_meets_the_catalog_that_was_shown_or_nothing(rows: ServerRows) -> None:
    await rows.active("a")
    for number in range(6):
        shown = await rows.observed("a", f"old{number}")
        assert shown.offered_hash is not None
        hash = shown.offered_hash

        def approve(hash: str = hash, number: int = number) -> Awaitable[Any]:
            return rows.store.approve(
                rows.organization_id, "notes", [f"old{number}"], offered_hash=hash, user_id=rows.admin
            )

        approved, _ = await together(approve, partial(rows.observed, "a", f"new{number}"))
        now = await rows.store.get(rows.organization_id, "notes")
        if isinstance(approved, Conflict):
            assert f"old{number}" not in now.approved
        else:
            assert approved == (f"old{number}",)
            assert f"old{number}" in now.withdrawn and f"old{number}" in await rows.off()


async def test_of_many_who_activate_one_does(rows: ServerRows) -> None:
    await rows.store.register(rows.organization_id, NOTES, connection_id=None, user_id=rows.admin)
    server = await rows.observed("a", "b")
    ends = await together(*[lambda: rows.activated(server)] * WORKERS)
    assert sum(isinstance(end, Conflict) for end in ends) == WORKERS - 1
    [row] = await rows.db.all("select count(*) as approvals from agent.mcp_approvals", {})
    assert row["approvals"] == 2


async def test_people_who_approve_the_same_tools_write_each_approval_once(rows: ServerRows) -> None:
    await rows.active("a")
    now = await rows.observed("a", "b", "c")
    hash = now.offered_hash
    assert hash is not None

    def approve() -> Awaitable[Any]:
        return rows.store.approve(rows.organization_id, "notes", None, offered_hash=hash, user_id=rows.admin)

    ends = await together(*[approve] * WORKERS)
    assert sorted(ends) == [()] * (WORKERS - 1) + [("b", "c")]
    assert (await rows.store.get(rows.organization_id, "notes")).server.revision == now.revision + 1


async def test_of_two_changes_of_one_revision_one_is_refused(rows: ServerRows) -> None:
    server = await rows.active("a")

    def put(url: str) -> Awaitable[Any]:
        config = NOTES.model_copy(update={"endpoint": HttpEndpoint(url=url)})
        return rows.store.reconfigure(
            rows.organization_id, config, connection_id=None, revision=server.revision, user_id=rows.admin
        )

    ends = await together(lambda: put("https://one.example/"), lambda: put("https://two.example/"))
    assert sum(isinstance(end, Conflict) for end in ends) == 1
    assert (await rows.store.get(rows.organization_id, "notes")).server.revision == server.revision + 1


async def test_what_people_say_of_different_tools_at_once_all_stands(rows: ServerRows) -> None:
    server = await rows.active("a", "b", "c")
    read = Classification(side_effects=SideEffects.READ, risk=Risk.LOW, idempotency=IdempotencyClass.READ_ONLY)

    def say(tool: str | None) -> Awaitable[Any]:
        return rows.store.classify(rows.organization_id, "notes", read, remote_name=tool, user_id=rows.admin)

    names = ("a", "b", "c", None)
    ends = await together(*[partial(say, name) for name in names])
    assert not [end for end in ends if isinstance(end, BaseException)]
    now = (await rows.store.get(rows.organization_id, "notes")).server
    assert (now.revision, now.endpoint_revision) == (server.revision + len(names), server.endpoint_revision)
    assert (now.config.classification, now.config.per_tool) == (read, {"a": read, "b": read, "c": read})
    await say("a")
    assert (await rows.store.get(rows.organization_id, "notes")).server.revision == now.revision


@pytest.mark.guarantee("D2")
async def test_whoever_is_quicker_a_retired_server_keeps_no_tool_that_may_be_called(rows: ServerRows) -> None:
    server = await rows.active("a", "b", resources=True)

    def look() -> Awaitable[Any]:
        return rows.store.observe(
            rows.organization_id, "notes", catalog("a"), resources=True, endpoint_revision=server.endpoint_revision
        )

    def retire() -> Awaitable[bool]:
        return rows.store.retire(rows.organization_id, "notes", user_id=rows.admin)

    ends = await together(*[look] * 3, *[retire] * 3, *[rows.failed] * 2)
    assert sorted(str(end) for end in ends[3:6]) == ["False", "False", "True"]
    now = await rows.store.get(rows.organization_id, "notes")
    assert now.server.state is ServerState.RETIRED
    assert await rows.off() == {"a", "b"} and not await rows.reads_resources()


async def test_failures_that_come_together_are_all_counted_and_degrade_once(rows: ServerRows) -> None:
    server = await rows.active("a")

    def fail() -> Awaitable[Any]:
        return rows.store.unreachable(
            rows.organization_id,
            "notes",
            reason="connect",
            degrade_after=3,
            endpoint_revision=server.endpoint_revision,
        )

    ends = await together(*[fail] * WORKERS)
    assert sorted(end.failures for end in ends) == list(range(1, WORKERS + 1))
    now = (await rows.store.get(rows.organization_id, "notes")).server
    assert (now.state, now.revision) == (ServerState.DEGRADED, server.revision + 1)


async def test_a_server_that_is_due_is_taken_by_one_sweep(rows: ServerRows) -> None:
    for number in range(5):
        config = NOTES.model_copy(update={"server_id": f"s{number}"})
        await rows.store.register(rows.organization_id, config, connection_id=None, user_id=rows.admin)
        seen = await rows.store.observe(
            rows.organization_id, f"s{number}", catalog("a"), resources=False, endpoint_revision=1
        )
        await rows.activated(seen.server)
    await rows.db.count("update agent.mcp_servers set probe_at = clock_timestamp()", {})
    ends = await together(*[lambda: rows.store.due(limit=2)] * WORKERS)
    taken = [server_id for end in ends for _, server_id in end]
    assert sorted(taken) == [f"s{number}" for number in range(5)]
