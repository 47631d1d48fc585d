"""Two organizations with a server of one name: neither sees, changes or is bothered by the other's (T1)."""

from collections.abc import AsyncIterator

import pytest

from agentic.contract.errors import NotFound, NotPermitted
from agentic.contract.principal import Role
from agentic.services.mcp.config import Authentication, AuthScheme, Classification
from agentic.services.mcp.records import ServerState
from agentic.storage.member_store import PostgresMemberStore
from mcp_rows import NOTES, ServerRows, catalog, server_rows

pytestmark = pytest.mark.guarantee("T1")


@pytest.fixture
async def both(database: str) -> AsyncIterator[tuple[ServerRows, ServerRows]]:
    async with server_rows(database) as ours, server_rows(database) as theirs:
        yield ours, theirs


async def test_a_server_of_another_organization_is_as_good_as_none(both: tuple[ServerRows, ServerRows]) -> None:
    ours, theirs = both
    server = await ours.active("a")
    assert server.offered_hash is not None
    there, store = theirs.organization_id, theirs.store
    ways = [
        store.get(there, "notes"),
        store.declarations(there, "notes", "a"),
        store.reconfigure(there, NOTES, connection_id=None, revision=server.revision, user_id=theirs.admin),
        store.classify(there, "notes", Classification(), remote_name="a", user_id=theirs.admin),
        store.observe(there, "notes", catalog("x"), resources=False, endpoint_revision=1),
        store.unreachable(there, "notes", reason="connect", degrade_after=1, endpoint_revision=1),
        store.activate(there, "notes", offered_hash=server.offered_hash, user_id=theirs.admin),
        store.approve(there, "notes", None, offered_hash=server.offered_hash, user_id=theirs.admin),
        store.retire(there, "notes", user_id=theirs.admin),
    ]
    for way in ways:
        with pytest.raises(NotFound, match="there is no MCP server 'notes' in this organization"):
            await way
    assert await store.servers(there) == [] and await store.generations(there, "notes") == []
    assert await store.revisions(there) == {} and await store.standings(there, ["notes"]) == []
    assert (await ours.store.get(ours.organization_id, "notes")).server == server


async def test_servers_of_one_name_live_apart(both: tuple[ServerRows, ServerRows]) -> None:
    ours, theirs = both
    await ours.active("a", "b", resources=True)
    await theirs.active("b", "c", resources=True)
    await ours.observed("a")
    await ours.failed(3)
    await theirs.store.retire(theirs.organization_id, "notes", user_id=theirs.admin)
    here = await ours.store.get(ours.organization_id, "notes")
    there = await theirs.store.get(theirs.organization_id, "notes")
    assert (here.server.state, there.server.state) == (ServerState.DEGRADED, ServerState.RETIRED)
    assert (set(here.approved), set(there.approved)) == ({"a", "b"}, {"b", "c"})
    assert (await ours.off(), await theirs.off()) == ({"b"}, {"b", "c"})
    assert [each.withdrawn_at for each in await theirs.store.declarations(theirs.organization_id, "notes", "b")] == [
        None
    ]
    assert len(await ours.store.generations(ours.organization_id, "notes")) == 2
    assert len(await theirs.store.generations(theirs.organization_id, "notes")) == 1


async def test_an_admin_of_another_organization_changes_nothing_here(both: tuple[ServerRows, ServerRows]) -> None:
    ours, theirs = both
    server = await ours.active("a")
    await PostgresMemberStore(ours.db).put(ours.organization_id, theirs.admin, Role.MEMBER)
    with pytest.raises(NotPermitted):
        await ours.store.retire(ours.organization_id, "notes", user_id=theirs.admin)
    assert (await ours.store.get(ours.organization_id, "notes")).server == server


async def test_a_connection_of_another_organization_is_as_good_as_none(both: tuple[ServerRows, ServerRows]) -> None:
    ours, theirs = both
    key = await theirs.key()
    auth = Authentication(scheme=AuthScheme.BEARER, credential_ref=str(key.id))
    config = NOTES.model_copy(update={"authentication": auth})
    with pytest.raises(NotFound, match=f"connection {key.id} does not exist in this organization"):
        await ours.store.register(ours.organization_id, config, connection_id=key.id, user_id=ours.admin)
    server = await ours.active("a")
    with pytest.raises(NotFound, match="does not exist in this organization"):
        await ours.store.reconfigure(
            ours.organization_id, config, connection_id=key.id, revision=server.revision, user_id=ours.admin
        )
    assert (await ours.store.get(ours.organization_id, "notes")).server == server


async def test_a_sweep_names_the_organization_of_each_server_that_is_due(both: tuple[ServerRows, ServerRows]) -> None:
    ours, theirs = both
    await ours.active("a")
    await theirs.active("a")
    await ours.db.count("update agent.mcp_servers set probe_at = clock_timestamp()", {})
    expected = {(ours.organization_id, "notes"), (theirs.organization_id, "notes")}
    assert set(await ours.store.due(limit=10)) == expected
