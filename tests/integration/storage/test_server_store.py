"""MCP servers as rows: where each is in its life, what it offered, and what a person approved of that."""

from collections.abc import AsyncIterator
from typing import Any
from uuid import uuid4

import pytest

from agentic.contract.errors import Conflict, NotFound, NotPermitted
from agentic.services.mcp.catalog import catalog_of
from agentic.services.mcp.config import (
    Authentication,
    AuthScheme,
    Classification,
    HttpEndpoint,
    Owner,
    ServerConfig,
    StdioLaunch,
    Timeouts,
)
from agentic.services.mcp.config_check import ServerRefused
from agentic.services.mcp.records import ServerState, Standing, StoredServer
from agentic.services.tools.models import IdempotencyClass, Risk, SideEffects
from agentic.storage import server_store
from agentic.storage.server_store import PostgresServerStore
from mcp_rows import FILES, LAUNCH, NOTES, TOKEN_ENDPOINT, URL, ServerRows, catalog, server_rows, tool


@pytest.fixture
async def rows(database: str) -> AsyncIterator[ServerRows]:
    async with server_rows(database) as made:
        yield made


async def standing(rows: ServerRows) -> Standing:
    return await rows.store.get(rows.organization_id, "notes")


def names(tools: Any) -> list[str]:
    return [each.remote_name for each in tools]


async def refused(rows: ServerRows, config: ServerConfig, **more: Any) -> str:
    with pytest.raises(ServerRefused) as error:
        await rows.store.register(rows.organization_id, config, user_id=rows.admin, **more)
    return str(error.value)


def using(scheme: AuthScheme, **more: Any) -> ServerConfig:
    auth = Authentication(scheme=scheme, credential_ref="of-the-connection", **more)
    return NOTES.model_copy(update={"authentication": auth})


# --- registering


async def test_a_configuration_comes_back_as_it_was_written(rows: ServerRows) -> None:
    key = await rows.key()
    read = Classification(
        side_effects=SideEffects.READ, risk=Risk.LOW, idempotency=IdempotencyClass.READ_ONLY, parallel_safe=True
    )
    config = ServerConfig(
        server_id="notes",
        endpoint=HttpEndpoint(url=URL),
        authentication=Authentication(scheme=AuthScheme.HEADER, credential_ref=str(key.id), name="X-Api-Key"),
        timeouts=Timeouts(connect_s=2.5, request_s=7, idle_s=60),
        classification=read,
        per_tool={"Föö \u200b": Classification()},
        max_output_bytes=1_000,
    )
    server = await rows.store.register(rows.organization_id, config, connection_id=key.id, user_id=rows.admin)
    assert (server.config, server.connection_id, server.state) == (config, key.id, ServerState.REGISTERED)
    assert (server.revision, server.endpoint_revision, server.launchable) == (1, 1, True)
    assert (await standing(rows)) == Standing(server=server, offered=catalog_of(()), approved={})


@pytest.mark.guarantee("T4")
async def test_the_command_of_a_stdio_server_is_in_no_row_and_comes_from_the_deployment(rows: ServerRows) -> None:
    server = await rows.store.register(rows.organization_id, FILES, connection_id=None, user_id=None)
    assert (server.config.endpoint, server.launchable) == (LAUNCH, True)
    [row] = await rows.db.all("select to_jsonb(s)::text as everything from agent.mcp_servers s", {})
    assert "notes-server" not in row["everything"]
    other = PostgresServerStore(rows.db, {"files": StdioLaunch(command=("other",))})
    assert (await other.get(rows.organization_id, "files")).server.config.endpoint == StdioLaunch(command=("other",))
    bare = (await PostgresServerStore(rows.db, {}).get(rows.organization_id, "files")).server
    assert not bare.launchable and bare.config.server_id == "files"


async def test_a_launch_of_the_same_name_changes_nothing_for_a_server_somewhere_else(rows: ServerRows) -> None:
    elsewhere = ServerConfig(server_id="files", endpoint=HttpEndpoint(url=URL))
    server = await rows.store.register(rows.organization_id, elsewhere, connection_id=None, user_id=rows.admin)
    assert server.config == elsewhere


async def test_a_name_is_taken_once_and_stays_taken_by_a_server_that_is_retired(rows: ServerRows) -> None:
    await rows.store.register(rows.organization_id, NOTES, connection_id=None, user_id=rows.admin)
    for said in ("there is a server notes here", "the server notes was retired"):
        with pytest.raises(Conflict, match=f"{said}.*choose another name"):
            await rows.store.register(rows.organization_id, NOTES, connection_id=None, user_id=rows.admin)
        await rows.store.retire(rows.organization_id, "notes", user_id=rows.admin)


@pytest.mark.parametrize("scheme", [AuthScheme.BEARER, AuthScheme.HEADER, AuthScheme.OAUTH2_CLIENT])
async def test_a_connection_has_to_hold_what_the_scheme_sends(rows: ServerRows, scheme: AuthScheme) -> None:
    key, client = await rows.key(), await rows.client()
    oauth = scheme is AuthScheme.OAUTH2_CLIENT
    name = "X-Api-Key" if scheme is AuthScheme.HEADER else None
    config = using(scheme, name=name, token_endpoint=TOKEN_ENDPOINT if oauth else None)
    right, wrong = (client, key) if oauth else (key, client)
    assert "takes a connection that holds" in await refused(rows, config, connection_id=wrong.id)
    server = await rows.store.register(rows.organization_id, config, connection_id=right.id, user_id=rows.admin)
    assert server.connection_id == right.id
    await rows.connections.revoke(rows.organization_id, right.id)
    other = config.model_copy(update={"server_id": "other"})
    assert "revoked" in await refused(rows, other, connection_id=right.id)


@pytest.mark.guarantee("T4")
async def test_a_server_gets_no_key_that_was_stored_for_somebody_else(rows: ServerRows) -> None:
    for provider in ("nylas", "mcp.others"):
        key = await rows.key(provider=provider)
        told = await refused(rows, using(AuthScheme.BEARER), connection_id=key.id)
        assert f"the connection is one of {provider}, whose key is nobody else's" in told
    key = await rows.key(provider="mcp.notes")
    config = using(AuthScheme.BEARER)
    server = await rows.store.register(rows.organization_id, config, connection_id=key.id, user_id=rows.admin)
    with pytest.raises(ServerRefused, match=r"one of mcp\.notes,"):
        await rows.store.register(
            rows.organization_id, config.model_copy(update={"server_id": "other"}), connection_id=key.id, user_id=None
        )
    assert server.connection_id == key.id


async def test_a_clients_secret_goes_to_the_endpoint_that_its_connection_names(rows: ServerRows) -> None:
    client = await rows.client()
    config = using(AuthScheme.OAUTH2_CLIENT, token_endpoint="https://steal.example/token")
    assert f"is known at {TOKEN_ENDPOINT}" in await refused(rows, config, connection_id=client.id)


async def test_a_server_with_a_scheme_has_a_connection_and_one_without_has_none(rows: ServerRows) -> None:
    key = await rows.key()
    await refused(rows, using(AuthScheme.BEARER), connection_id=None)
    await refused(rows, NOTES, connection_id=key.id)


# --- what is observed


async def test_what_a_server_offers_is_kept_as_it_wrote_it(rows: ServerRows) -> None:
    await rows.store.register(rows.organization_id, NOTES, connection_id=None, user_id=rows.admin)
    odd = tool(
        "odd \u2028",
        "a \U0001f600\u2029",
        annotations={"a": 1.5, "b": 10**15},
        outputSchema={"type": "object", "x": 1e300},
    )
    hidden = tool(
        "hidden", inputSchema={"type": "object", "properties": {"\0": {"type": "array", "\0": "x", "$ref": "#/x"}}}
    )
    bad = {"name": "bad", "inputSchema": {"type": "array"}}
    offered = catalog("b", odd, "Get Item", "get-item", bad, hidden, {"name": "\0"})
    assert len(offered.tools) == 2 and len(offered.rejected) == 3 and len(offered.conflicts) == 1
    seen = await rows.store.observe(rows.organization_id, "notes", offered, resources=True, endpoint_revision=1)
    assert (seen.server.state, seen.server.offered_hash) == (ServerState.VERIFIED, offered.catalog_hash)
    assert (seen.previous_hash, seen.new_generation, seen.server.resources) == (None, True, True)
    assert (await standing(rows)).offered == offered


async def test_a_catalog_that_was_seen_before_is_not_written_again(rows: ServerRows) -> None:
    await rows.active("a", "b")
    first = (await standing(rows)).server
    for tools, new in ((("a",), True), (("a", "b"), False), (("a",), False)):
        before = (await standing(rows)).offered.catalog_hash
        now = (await standing(rows)).server.endpoint_revision
        seen = await rows.store.observe(
            rows.organization_id, "notes", catalog(*tools), resources=False, endpoint_revision=now
        )
        assert (seen.new_generation, seen.previous_hash) == (new, before)
    generations = await rows.store.generations(rows.organization_id, "notes")
    assert [hash for hash, _ in generations] == [catalog("a").catalog_hash, first.offered_hash]


async def test_the_revision_grows_with_what_a_run_could_be_shown_and_with_nothing_else(rows: ServerRows) -> None:
    async def revision() -> int:
        return (await standing(rows)).server.revision

    await rows.active("a")
    before = await revision()
    await rows.observed("a")
    await rows.failed(2)
    await rows.observed("a")
    assert await revision() == before
    steps = [rows.observed("b"), rows.observed("b", resources=True), rows.failed(3), rows.observed("b", resources=True)]
    for step in steps:
        await step
        assert await revision() == (before := before + 1)
    assert await rows.store.revisions(rows.organization_id) == {"notes": before}


async def test_names_that_disappeared_are_stamped_once(rows: ServerRows) -> None:
    await rows.active("a", "b")
    await rows.observed("a")
    [left] = await rows.store.declarations(rows.organization_id, "notes", "b")
    assert left.withdrawn_at is not None
    await rows.observed("a", "b")
    await rows.observed("a")
    assert await rows.store.declarations(rows.organization_id, "notes", "b") == [left]
    assert {each.withdrawn_at for each in await rows.store.declarations(rows.organization_id, "notes", "a")} == {None}


async def test_which_schema_a_tool_had_is_answered_long_after_it_changed(rows: ServerRows) -> None:
    first, second = tool("a", "one", inputSchema={"type": "object", "title": "1"}), tool("a", "two")
    await rows.active(first)
    await rows.observed(second)
    third = await rows.observed(second, "b")
    assert third.offered_hash is not None
    await rows.store.approve(rows.organization_id, "notes", ["a"], offered_hash=third.offered_hash, user_id=rows.admin)
    found = await rows.store.declarations(rows.organization_id, "notes", "a")
    assert [each.tool.input_schema.get("title") for each in found] == [None, None, "1"]
    assert [each.tool.description for each in found] == ["two", "two", "one"]
    assert [each.approved_by for each in found] == [rows.admin] * 3
    approved = [each.approved_at for each in found]
    assert None not in approved and approved[0] == approved[1] != approved[2]
    assert await rows.store.declarations(rows.organization_id, "notes", "zz") == []


async def test_of_a_server_that_changes_all_the_time_the_newest_and_the_approved_catalogs_are_kept(
    rows: ServerRows, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_store, "KEPT_CATALOGS", 3)
    await rows.active("a")
    for number in range(6):
        await rows.observed("a", f"t{number}")
    kept = [hash for hash, _ in await rows.store.generations(rows.organization_id, "notes")]
    assert kept == [
        catalog("a", "t5").catalog_hash,
        catalog("a", "t4").catalog_hash,
        catalog("a", "t3").catalog_hash,
        catalog("a").catalog_hash,
    ]
    await rows.observed("a", "t3")
    await rows.observed("a", "t6")
    await rows.observed("a", "t7")
    await rows.observed("a", "t5")
    assert (await standing(rows)).offered == catalog("a", "t5")


async def test_what_was_dialled_under_another_endpoint_says_nothing(rows: ServerRows) -> None:
    server = await rows.active("a")
    moved = NOTES.model_copy(update={"endpoint": HttpEndpoint(url="https://other.example/mcp")})
    await rows.store.reconfigure(
        rows.organization_id, moved, connection_id=None, revision=server.revision, user_id=rows.admin
    )
    with pytest.raises(Conflict, match="another endpoint meanwhile"):
        await rows.store.observe(
            rows.organization_id, "notes", catalog("evil"), resources=False, endpoint_revision=server.endpoint_revision
        )
    untouched = await rows.store.unreachable(
        rows.organization_id, "notes", reason="connect", degrade_after=1, endpoint_revision=server.endpoint_revision
    )
    assert (untouched.state, untouched.failures, untouched.reason) == (ServerState.REGISTERED, 0, None)


# --- configuration


async def test_another_classification_leaves_the_state_and_another_endpoint_begins_anew(rows: ServerRows) -> None:
    server = await rows.active("a", resources=True)
    read = Classification(side_effects=SideEffects.READ, risk=Risk.LOW, idempotency=IdempotencyClass.READ_ONLY)

    async def put(server: StoredServer, config: ServerConfig) -> StoredServer:
        return await rows.store.reconfigure(
            rows.organization_id, config, connection_id=None, revision=server.revision, user_id=rows.admin
        )

    classified = await put(server, NOTES.model_copy(update={"classification": read}))
    assert (classified.state, classified.endpoint_revision) == (ServerState.ACTIVE, server.endpoint_revision)
    assert (classified.revision, classified.config.classification) == (server.revision + 1, read)
    assert await rows.off() == set() and await rows.reads_resources()

    moved = await put(classified, NOTES.model_copy(update={"endpoint": HttpEndpoint(url="https://other.example/mcp")}))
    assert (moved.state, moved.offered_hash, moved.verified_at, moved.activated_at) == (
        ServerState.REGISTERED,
        None,
        None,
        None,
    )
    assert moved.endpoint_revision == moved.revision and not moved.resources
    assert await rows.off() == {"a"} and not await rows.reads_resources()
    assert await rows.store.revisions(rows.organization_id) == {}

    again = await rows.activated(await rows.observed("a", "b", resources=True))
    assert again.state is ServerState.ACTIVE and await rows.off() == set() and await rows.reads_resources()
    with pytest.raises(Conflict, match="changed meanwhile"):
        await put(moved, NOTES)


async def test_a_server_that_is_not_there_is_not_found_by_any_way(rows: ServerRows) -> None:
    here, store = rows.organization_id, rows.store
    unknown = NOTES.model_copy(update={"server_id": "nobodys"})
    ways = [
        store.get(here, "nobodys"),
        store.get(here, "a\0b"),
        store.declarations(here, "nobodys", "a"),
        store.reconfigure(here, unknown, connection_id=None, revision=1, user_id=rows.admin),
        store.classify(here, "nobodys", Classification(), remote_name=None, user_id=rows.admin),
        store.observe(here, "nobodys", catalog("a"), resources=False, endpoint_revision=1),
        store.unreachable(here, "nobodys", reason="connect", degrade_after=3, endpoint_revision=1),
        store.activate(here, "nobodys", offered_hash="c1:0", user_id=rows.admin),
        store.approve(here, "nobodys", None, offered_hash="c1:0", user_id=rows.admin),
        store.retire(here, "nobodys", user_id=rows.admin),
    ]
    for way in ways:
        with pytest.raises(NotFound, match="there is no MCP server"):
            await way
    assert await store.generations(here, "nobodys") == [] and await store.standings(here, ["nobodys"]) == []


async def test_changes_take_the_role_admin(rows: ServerRows) -> None:
    here, store = rows.organization_id, rows.store
    server = await rows.active("a")
    await rows.observed("a", "b")
    hash = (await standing(rows)).offered.catalog_hash
    for person in (rows.operator, uuid4()):
        ways = [
            store.register(here, NOTES.model_copy(update={"server_id": "other"}), connection_id=None, user_id=person),
            store.reconfigure(here, NOTES, connection_id=None, revision=server.revision, user_id=person),
            store.classify(here, "notes", Classification(), remote_name="a", user_id=person),
            store.activate(here, "notes", offered_hash=hash, user_id=person),
            store.approve(here, "notes", None, offered_hash=hash, user_id=person),
            store.retire(here, "notes", user_id=person),
        ]
        for way in ways:
            with pytest.raises(NotPermitted, match="role admin"):
                await way
    assert [each.state for each in await store.servers(here)] == [ServerState.ACTIVE]
    assert names((await standing(rows)).waiting) == ["b"]


# --- approval


async def test_nothing_is_approved_before_a_person_activates_what_was_shown(rows: ServerRows) -> None:
    here, store = rows.organization_id, rows.store
    await store.register(here, NOTES, connection_id=None, user_id=rows.admin)
    with pytest.raises(Conflict, match="is registered; only a verified one"):
        await store.activate(here, "notes", offered_hash="c1:0", user_id=rows.admin)
    shown = await rows.observed("a")
    await rows.observed("a", "b")
    assert shown.offered_hash is not None
    with pytest.raises(Conflict, match="something else by now"):
        await store.activate(here, "notes", offered_hash=shown.offered_hash, user_id=rows.admin)
    with pytest.raises(Conflict, match="is verified; its tools are approved when it is activated"):
        await store.approve(here, "notes", ["a"], offered_hash=catalog("a", "b").catalog_hash, user_id=rows.admin)
    now = await standing(rows)
    assert (now.server.state, names(now.waiting)) == (ServerState.VERIFIED, ["a", "b"])
    assert await store.revisions(here) == {}
    await rows.activated(now.server)
    now = await standing(rows)
    assert (now.server.state, names(now.unchanged), now.waiting) == (ServerState.ACTIVE, ["a", "b"], ())
    with pytest.raises(Conflict, match="is active"):
        await store.activate(here, "notes", offered_hash=now.offered.catalog_hash, user_id=rows.admin)


@pytest.mark.guarantee("T4")
async def test_what_changed_is_apart_from_what_is_as_it_was_approved(rows: ServerRows) -> None:
    await rows.active("same", "changed", "left")
    now = await rows.observed("same", tool("changed", "Not as it was."), "new")
    found = await standing(rows)
    assert (names(found.unchanged), names(found.quarantined)) == (["same"], ["changed"])
    assert (names(found.waiting), found.withdrawn) == (["new"], ("left",))
    assert (
        found.quarantined[0].description == "Not as it was." and found.approved["changed"].description == "As it was."
    )
    assert await rows.off() == {"left"}
    assert now.offered_hash is not None
    anew = await rows.store.approve(
        rows.organization_id, "notes", ["same", "changed"], offered_hash=now.offered_hash, user_id=rows.admin
    )
    found = await standing(rows)
    assert (anew, names(found.unchanged), names(found.waiting)) == (("changed",), ["changed", "same"], ["new"])
    anew = await rows.store.approve(
        rows.organization_id, "notes", None, offered_hash=now.offered_hash, user_id=rows.admin
    )
    found = await standing(rows)
    assert (anew, names(found.unchanged), found.withdrawn) == (("new",), ["changed", "new", "same"], ())
    assert await rows.off() == {"left"}, "runs may still have it"


async def test_a_tool_that_comes_back_is_as_it_was_approved_unless_its_approval_was_ended(rows: ServerRows) -> None:
    await rows.active("a", "b")
    await rows.observed("a")
    await rows.observed("a", "b")
    assert await rows.off() == set() and names((await standing(rows)).unchanged) == ["a", "b"]
    left = await rows.observed("a")
    assert left.offered_hash is not None
    await rows.store.approve(rows.organization_id, "notes", None, offered_hash=left.offered_hash, user_id=rows.admin)
    await rows.observed("a", "b")
    found = await standing(rows)
    assert (names(found.unchanged), names(found.waiting)) == (["a"], ["b"])
    assert await rows.off() == {"b"}
    await rows.store.approve(
        rows.organization_id, "notes", ["b"], offered_hash=found.offered.catalog_hash, user_id=rows.admin
    )
    assert await rows.off() == set()


async def test_tools_are_approved_all_together_or_not_at_all(rows: ServerRows) -> None:
    await rows.active("a")
    now = await rows.observed("a", "b")
    assert now.offered_hash is not None
    with pytest.raises(NotFound, match="offers no tool 'zz'; none was approved"):
        await rows.store.approve(
            rows.organization_id, "notes", ["b", "zz"], offered_hash=now.offered_hash, user_id=rows.admin
        )
    assert names((await standing(rows)).waiting) == ["b"]
    assert (await standing(rows)).server.revision == now.revision
    with pytest.raises(Conflict, match="something else by now"):
        await rows.store.approve(rows.organization_id, "notes", ["b"], offered_hash="c1:0", user_id=rows.admin)


async def test_two_remote_names_that_mean_one_tool_at_different_times_leave_it_available(rows: ServerRows) -> None:
    await rows.active("Get Item")
    now = await rows.observed("get-item")
    assert await rows.off() == {"get_item"}, "the one that was approved left"
    assert now.offered_hash is not None
    await rows.store.approve(
        rows.organization_id, "notes", ["get-item"], offered_hash=now.offered_hash, user_id=rows.admin
    )
    assert await rows.off() == set()


# --- probes and the end


async def test_an_active_server_is_degraded_at_the_third_failure_in_a_row_and_comes_back(rows: ServerRows) -> None:
    await rows.active("a")
    await rows.failed(2)
    await rows.observed("a")
    assert (await rows.failed(2)).state is ServerState.ACTIVE
    degraded = await rows.failed()
    assert (degraded.state, degraded.failures, degraded.reason) == (ServerState.DEGRADED, 3, "connect")
    assert await rows.store.revisions(rows.organization_id) == {"notes": degraded.revision}
    assert await rows.off() == set(), "a run that has its tools may try"
    assert (await rows.failed()).state is ServerState.DEGRADED
    back = await rows.observed("a")
    assert (back.state, back.failures, back.reason) == (ServerState.ACTIVE, 0, None)


async def test_a_server_that_was_never_activated_is_not_degraded(rows: ServerRows) -> None:
    await rows.store.register(rows.organization_id, NOTES, connection_id=None, user_id=rows.admin)
    assert (await rows.failed(4)).state is ServerState.REGISTERED
    seen = await rows.observed("a")
    assert (seen.failures, seen.reason) == (0, None)
    assert (await rows.failed(4)).state is ServerState.VERIFIED


async def test_probes_are_due_each_hour_and_each_five_minutes_after_a_failure(rows: ServerRows) -> None:
    async def due_in() -> int:
        [row] = await rows.db.all(
            "select round(extract(epoch from probe_at - clock_timestamp()) / 60)::int as minutes from agent.mcp_servers",
            {},
        )
        return int(row["minutes"])

    await rows.active("a")
    assert await due_in() == 60
    await rows.failed()
    assert await due_in() == 5
    await rows.observed("a")
    assert await due_in() == 60
    assert await rows.store.due(limit=10) == []
    await rows.db.count("update agent.mcp_servers set probe_at = clock_timestamp() - interval '1 second'", {})
    assert await rows.store.due(limit=10) == [(rows.organization_id, "notes")]
    assert await rows.store.due(limit=10) == [], "it is taken"
    assert await due_in() == 5


async def test_the_longest_due_are_taken_first(rows: ServerRows) -> None:
    for number in range(4):
        config = NOTES.model_copy(update={"server_id": f"s{number}"})
        await rows.store.register(rows.organization_id, config, connection_id=None, user_id=rows.admin)
        seen = await rows.store.observe(
            rows.organization_id,
            config.server_id,
            catalog("a", server_id=config.server_id),
            resources=False,
            endpoint_revision=1,
        )
        await rows.activated(seen.server)
        await rows.db.count(
            "update agent.mcp_servers set probe_at = clock_timestamp() - make_interval(mins => %(late)s) where server_id = %(id)s",
            {"late": number, "id": config.server_id},
        )
    assert [server_id for _, server_id in await rows.store.due(limit=2)] == ["s3", "s2"]
    assert [server_id for _, server_id in await rows.store.due(limit=9)] == ["s1", "s0"]


@pytest.mark.guarantee("D2")
async def test_a_retired_server_takes_its_tools_out_of_every_run_and_is_so_for_good(rows: ServerRows) -> None:
    await rows.active("a", "b", resources=True)
    now = await rows.observed("b", tool("c"), resources=True)
    assert now.offered_hash is not None
    assert await rows.store.retire(rows.organization_id, "notes", user_id=rows.admin)
    assert await rows.off() == {"a", "b"} and not await rows.reads_resources()
    assert not await rows.store.retire(rows.organization_id, "notes", user_id=rows.admin)
    again = [
        rows.observed("a"),
        rows.activated(now),
        rows.store.classify(rows.organization_id, "notes", Classification(), remote_name="b", user_id=rows.admin),
        rows.store.reconfigure(
            rows.organization_id, NOTES, connection_id=None, revision=now.revision + 1, user_id=rows.admin
        ),
        rows.store.approve(rows.organization_id, "notes", None, offered_hash=now.offered_hash, user_id=rows.admin),
    ]
    for way in again:
        with pytest.raises(Conflict, match="is retired"):
            await way
    assert (await rows.failed()).failures == 0
    assert await rows.off() == {"a", "b"}
    assert (await standing(rows)).server.state is ServerState.RETIRED


async def test_a_stdio_server_is_started_for_somebody_until_the_last_organization_retires_it(
    rows: ServerRows, database: str
) -> None:
    config = FILES.model_copy(update={"server_id": f"f{uuid4().hex[:20]}"})
    name = config.server_id
    assert not await rows.store.started_for_somebody(name)
    async with server_rows(database) as others:
        for each in (rows, others):
            await each.store.register(each.organization_id, config, connection_id=None, user_id=None)
        for each, left in ((rows, True), (others, False)):
            await each.store.retire(each.organization_id, name, user_id=None)
            assert await rows.store.started_for_somebody(name) is left


async def test_the_servers_of_an_organization_are_listed_by_name_the_retired_ones_last(rows: ServerRows) -> None:
    for server_id in ("b", "a", "c"):
        config = NOTES.model_copy(update={"server_id": server_id, "owner": Owner.OPERATOR})
        await rows.store.register(rows.organization_id, config, connection_id=None, user_id=None)
    await rows.store.retire(rows.organization_id, "a", user_id=None)
    assert [each.server_id for each in await rows.store.servers(rows.organization_id)] == ["b", "c", "a"]
