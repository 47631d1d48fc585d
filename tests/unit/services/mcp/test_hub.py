"""What the database says of an organization's servers becomes the tools its runs can have. No server is talked to in here."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid4

import pytest
from pydantic import BaseModel

from agentic.contract.errors import ProgramFault
from agentic.contract.principal import Principal
from agentic.services.mcp.catalog import Catalog, RemoteTool, read_catalog
from agentic.services.mcp.config import Classification, HttpEndpoint, Owner, ServerConfig, StdioLaunch
from agentic.services.mcp.hub import ServerHub
from agentic.services.mcp.records import Observation, ServerState, Standing, StoredServer
from agentic.services.tools.context import CallContext
from agentic.services.tools.declarations import internal_tool
from agentic.services.tools.registry import ToolRegistry, build_registry

HERE, ELSEWHERE = uuid4(), uuid4()
NOW = datetime(2026, 11, 30, tzinfo=UTC)


class Nothing:
    async def resolve(self, reference: str) -> Any:
        raise AssertionError("no server is dialled in here")

    async def unauthorized(self, *, run_id: UUID, server_id: str) -> bool:
        raise AssertionError

    async def take_renewal(self, *, run_id: UUID, server_id: str) -> bool:
        raise AssertionError

    async def give_up(self, *, run_id: UUID, server_id: str) -> None:
        raise AssertionError


class Rows:
    """The database, as far as a hub reads it."""

    def __init__(self) -> None:
        self.rows: dict[UUID, dict[str, Standing]] = {}
        self.read: list[str] = []

    def put(self, standing: Standing) -> None:
        self.rows.setdefault(standing.server.organization_id, {})[standing.server.server_id] = standing

    async def revisions(self, organization_id: UUID) -> Mapping[str, int]:
        in_use = (ServerState.ACTIVE, ServerState.DEGRADED)
        rows = self.rows.get(organization_id, {})
        return {name: each.server.revision for name, each in rows.items() if each.server.state in in_use}

    async def standings(self, organization_id: UUID, server_ids: Sequence[str]) -> list[Standing]:
        self.read += server_ids
        rows = self.rows.get(organization_id, {})
        return [rows[name] for name in sorted(server_ids) if name in rows]

    async def observe(
        self, organization_id: UUID, server_id: str, catalog: Catalog, *, resources: bool, endpoint_revision: int
    ) -> Observation:
        raise AssertionError("no server is dialled in here")


class Words(BaseModel):
    text: str


@internal_tool("crm.find", "Finds people.")
async def find(ctx: CallContext, args: Words) -> list[str]:
    return []


def listed(server_id: str, *names: str, description: str = "Does it.") -> Catalog:
    schema = {"type": "object"}
    raw = [{"name": name, "description": description, "inputSchema": schema} for name in names]
    return read_catalog(server_id, raw)


def standing(
    *names: str,
    approved: Sequence[RemoteTool] | None = None,
    server_id: str = "notes",
    organization_id: UUID = HERE,
    **fields: Any,
) -> Standing:
    offered = listed(server_id, *names)
    server = StoredServer(
        **{
            "id": uuid4(),
            "organization_id": organization_id,
            "config": ServerConfig(server_id=server_id, endpoint=HttpEndpoint(url="https://tools.vendor.example/mcp")),
            "state": ServerState.ACTIVE,
            "revision": 1,
            "endpoint_revision": 1,
            "connection_id": None,
            "offered_hash": offered.catalog_hash,
            "resources": False,
            "reason": None,
            "failures": 0,
            "verified_at": NOW,
            "activated_at": NOW,
            "retired_at": None,
            "seen_at": NOW,
            "created_at": NOW,
            **fields,
        }
    )
    tools = offered.tools if approved is None else approved
    return Standing(server=server, offered=offered, approved={tool.remote_name: tool for tool in tools})


class World:
    def __init__(self) -> None:
        self.rows = Rows()
        self.launches: dict[str, StdioLaunch] = {}
        self.registry: ToolRegistry = build_registry([find])
        self.hub = ServerHub(
            store=self.rows,
            registry=self.registry,
            launches=self.launches,
            vault=lambda organization_id: Nothing(),
            permits=lambda origin: True,
            marks=Nothing(),
        )

    async def have(self, *standings: Standing) -> None:
        for each in standings:
            self.rows.put(each)
        for organization_id in {each.server.organization_id for each in standings}:
            await self.hub.refresh(organization_id)

    def there(self, *names: str, organization_id: UUID = HERE) -> list[str]:
        return [name for name in names if self.registry.get(f"mcp.{name}", organization_id) is not None]

    async def offered(self, *tools: str, organization_id: UUID = HERE) -> list[str]:
        """The tools of a new run of an agent that names these."""

        class Agent:
            def __init__(self) -> None:
                self.tools = tools

        principal = Principal(organization_id=organization_id)
        return [spec.name for spec in await self.registry.specs_for_session(Agent(), principal)]


@pytest.fixture
def world() -> World:
    return World()


async def test_what_was_approved_and_is_declared_so_still_is_offered_and_nothing_that_waits(world: World) -> None:
    approved = [tool for tool in listed("notes", "find", "save").tools if tool.remote_name == "find"]
    await world.have(standing("find", "save", approved=approved))
    assert await world.offered("mcp.notes.*") == ["mcp.notes.find"]
    assert world.there("notes.find", "notes.save") == ["notes.find"]
    with pytest.raises(ProgramFault, match=r"mcp\.notes\.save"):
        await world.offered("mcp.notes.save")


@pytest.mark.guarantee("T4")
async def test_a_tool_that_is_declared_differently_is_there_as_it_is_now_and_not_for_a_new_run(world: World) -> None:
    old = listed("notes", "find", "save", description="As it was.").tools
    await world.have(standing("find", "save", approved=[old[0], *listed("notes", "save").tools]))
    there = world.registry.get("mcp.notes.find", HERE)
    assert there is not None and there.spec.description == "Does it."
    assert await world.offered("mcp.notes.find", "mcp.notes.*") == ["mcp.notes.save"]


async def test_a_definition_that_names_a_tool_its_server_took_back_starts_without_it(world: World) -> None:
    await world.have(standing("find", approved=listed("notes", "find", "save").tools))
    assert await world.offered("mcp.notes.find", "mcp.notes.save") == ["mcp.notes.find"]


async def test_new_runs_do_without_a_server_that_cannot_be_reached_and_runs_that_have_its_tools_keep_them(
    world: World,
) -> None:
    up = standing("find", resources=True)
    await world.have(replace(up, server=replace(up.server, state=ServerState.DEGRADED, revision=2, reason="connect")))
    assert await world.offered("mcp.notes.find", "mcp.notes.*") == []
    assert world.there("notes.find", "notes.read_resource") == ["notes.find", "notes.read_resource"]
    await world.have(replace(up, server=replace(up.server, revision=3)))
    assert await world.offered("mcp.notes.*") == ["mcp.notes.find", "mcp.notes.read_resource"]


@pytest.mark.parametrize("state", [ServerState.RETIRED, ServerState.REGISTERED])
async def test_a_server_that_is_not_in_use_any_more_takes_its_tools_with_it(world: World, state: ServerState) -> None:
    notes = standing("find")
    await world.have(notes, standing("search", server_id="wiki"))
    await world.have(replace(notes, server=replace(notes.server, state=state, revision=2)))
    assert world.there("notes.find", "wiki.search") == ["wiki.search"]


async def test_what_has_not_changed_is_not_read_again(world: World) -> None:
    await world.have(standing("find"), standing("search", server_id="wiki"))
    await world.hub.refresh(HERE)
    assert sorted(world.rows.read) == ["notes", "wiki"]
    await world.have(standing("find", "more", revision=2))
    assert world.rows.read[2:] == ["notes"] and world.there("notes.more", "wiki.search") == [
        "notes.more",
        "wiki.search",
    ]


@pytest.mark.guarantee("T1")
async def test_two_organizations_with_one_server_id_see_their_own_tools_alone(world: World) -> None:
    await world.have(standing("find"), standing("save", organization_id=ELSEWHERE))
    assert world.there("notes.find", "notes.save") == ["notes.find"]
    assert world.there("notes.find", "notes.save", organization_id=ELSEWHERE) == ["notes.save"]


@pytest.mark.guarantee("N1")
async def test_names_of_two_servers_that_a_model_could_not_tell_apart_cost_both_whichever_came_first(
    world: World,
) -> None:
    first, second = standing("b_c", "fine", server_id="a"), standing("c", server_id="a_b")
    await world.have(first)
    assert world.there("a.b_c") == ["a.b_c"]
    await world.have(second)
    assert world.there("a.b_c", "a_b.c", "a.fine") == ["a.fine"]
    other = World()
    await other.have(second)
    await other.have(first)
    assert other.there("a.b_c", "a_b.c", "a.fine") == ["a.fine"]


async def test_an_operator_who_says_something_else_of_a_tool_changes_its_contract(world: World) -> None:
    before = standing("find")
    await world.have(before)
    old = world.registry.get("mcp.notes.find", HERE)
    said = Classification.model_validate({"side_effects": "read", "risk": "low", "idempotency": "read_only"})
    config = before.server.config.model_copy(update={"classification": said})
    await world.have(replace(before, server=replace(before.server, config=config, revision=2)))
    new = world.registry.get("mcp.notes.find", HERE)
    assert old is not None and new is not None and old.spec.contract_hash != new.spec.contract_hash


async def test_looks_that_come_together_leave_the_newest_answer(world: World) -> None:
    world.rows.put(standing("find"))
    await asyncio.gather(*(world.hub.refresh(HERE) for _ in range(10)))
    assert world.rows.read == ["notes"] and world.there("notes.find") == ["notes.find"]


async def test_a_look_whose_caller_gave_up_is_finished_all_the_same(world: World) -> None:
    world.rows.put(standing("find"))
    looking = asyncio.create_task(world.hub.refresh(HERE))
    while not world.rows.read:  # noqa: ASYNC110 - the look has got as far as its answer
        await asyncio.sleep(0)
    looking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await looking
    await world.hub.aclose()
    assert world.there("notes.find") == ["notes.find"]


async def test_a_pattern_with_nothing_behind_it_is_no_tool_and_a_line_in_the_log(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    await world.hub.refresh(HERE)
    assert await world.offered("crm.find", "mcp.notes.*") == ["crm.find"]
    assert "mcp.notes.*" in caplog.text
    with pytest.raises(ProgramFault, match=r"mcp\.notes\.find"):
        await world.offered("mcp.notes.find")


async def test_a_command_that_the_deployment_changed_counts_from_the_next_look_on(world: World) -> None:
    launch = StdioLaunch(command=("notes-server",))
    config = ServerConfig(server_id="notes", owner=Owner.OPERATOR, endpoint=launch)
    world.launches["notes"] = launch
    await world.have(standing("find", config=config))
    await world.hub.refresh(HERE)
    assert world.rows.read == ["notes"]
    other = StdioLaunch(command=("notes-server", "--quiet"))
    world.launches["notes"] = other
    await world.have(standing("find", config=config.model_copy(update={"endpoint": other})))
    await world.hub.refresh(HERE)
    assert world.rows.read == ["notes", "notes"]
