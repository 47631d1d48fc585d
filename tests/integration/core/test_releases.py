"""What becomes of runs when a tool is switched off, released, or stored by another release of the package."""

import json
from typing import Any
from uuid import UUID, uuid4

import pytest
from pydantic import BaseModel

from agentic.bootstrap import App, open_platform
from agentic.contract.canonical import canonical, digest_of
from agentic.contract.errors import ProgramFault
from agentic.contract.principal import Principal
from agentic.runtime.agent.definition import AgentDefinition
from agentic.runtime.agent.script import Turn
from agentic.services.tools.context import CallContext
from agentic.services.tools.live import InFlight, ReleaseState
from agentic.services.tools.models import IdempotencyClass, RemoteBinding, Risk, SideEffects, ToolSpec
from agentic.testing import Call, Calls, Harness, Say, harness
from agentic.testing.harness import RecordingBus
from core_world import Done, World, execute, rows

SAVE = Calls([Call("notes.save", {"text": "milk"}), Call("crm.search", {"text": "per"})])


async def codes(h: Harness, run_id: UUID) -> list[str]:
    """How each call of the run ended, as the model read it."""
    told = [json.loads(text.split("\n")[0]) for role, text in await h.messages(run_id) if role == "tool"]
    return [answer.get("reason_code", "ok") for answer in told]


async def move(h: Harness, state: Any, in_flight: InFlight | None = None) -> None:
    await h.platform.catalogue.release(
        h.organization_id, "notes.save", 1, state=state, in_flight=in_flight, user_id=h.user_id
    )


@pytest.mark.guarantee("D2")
@pytest.mark.parametrize(
    ("state", "in_flight", "running"),
    [
        (ReleaseState.DEPRECATED, None, "ok"),
        (ReleaseState.REVOKED, InFlight.FINISH, "ok"),
        (ReleaseState.REVOKED, InFlight.REFUSE, "tool_unavailable"),
    ],
)
async def test_a_run_that_has_a_version_finishes_with_it_or_is_refused_and_a_new_one_does_not_get_it(
    database: str, state: Any, in_flight: InFlight | None, running: str
) -> None:
    world = World()
    async with harness(tools=[world.write(), world.read()], script=[SAVE, Say("Done.")], database_url=database) as h:
        before = await h.start()
        await move(h, state, in_flight)
        after = await h.start()
        assert (await h.settle(before)).state == "succeeded"
        assert await codes(h, before) == [running, "ok"]
        assert world.of("notes.save") == (["milk"] if running == "ok" else [])
        world.effects.clear()
        assert (await h.settle(after)).state == "succeeded"
        assert await codes(h, after) == ["unknown_tool", "ok"]
        assert world.of("notes.save") == []


async def test_a_run_that_slipped_in_beside_a_revocation_may_not_finish_with_it(database: str) -> None:
    world = World()
    async with harness(tools=[world.write(), world.read()], script=[SAVE, Say("Done.")], database_url=database) as h:
        run_id = await h.start()
        await move(h, ReleaseState.REVOKED, InFlight.FINISH)
        await execute(h, "update agent.tool_releases set revoked_at = (select created_at from agent.runs)")
        await h.settle(run_id)
        assert await codes(h, run_id) == ["tool_unavailable", "ok"]
        assert world.of("notes.save") == []


@pytest.mark.guarantee("J3")
@pytest.mark.parametrize("how", ["revoked", "disabled", "unreadable"])
async def test_an_effect_that_is_done_answers_from_the_journal_when_its_tool_is_gone(database: str, how: str) -> None:
    world = World()
    script: list[Turn] = [
        Calls([Call("notes.save", {"text": "milk"})]),
        Calls([Call("mail.send", {"text": "hello"})]),
        Calls([Call("notes.save", {"text": "milk"}), Call("notes.save", {"text": "tea"})]),
        Say("Done."),
    ]
    async with harness(tools=[world.write(), world.send()], script=script, database_url=database) as h:
        run_id = await h.start()
        assert (await h.settle(run_id)).state == "parked"
        if how == "revoked":
            await move(h, ReleaseState.REVOKED, InFlight.REFUSE)
        elif how == "disabled":
            await h.platform.catalogue.set_enabled(h.organization_id, "notes.save", enabled=False, user_id=h.user_id)
        else:
            await execute(h, "update agent.tool_contracts set spec = '{' where name = 'notes.save'")
        await h.decide(run_id)
        assert (await h.settle(run_id)).state == "succeeded"
        assert await codes(h, run_id) == ["ok", "ok", "ok", "tool_unavailable"]
        assert world.of("notes.save") == ["milk"]


async def test_a_tool_switched_off_in_one_organization_is_on_in_another(database: str) -> None:
    world = World()
    async with harness(tools=[world.write(), world.read()], script=[SAVE, Say("Done.")], database_url=database) as h:
        await h.start()
        await h.platform.catalogue.set_enabled(h.organization_id, "notes.save", enabled=False)
        here = await h.platform.registry.list_for_organization(h.organization_id)
        elsewhere = await h.platform.registry.list_for_organization(uuid4())
        assert [spec.name for spec in here] == ["crm.search"]
        assert [spec.name for spec in elsewhere] == ["notes.save", "crm.search"]
        await h.platform.catalogue.set_enabled(h.organization_id, "notes.save", enabled=True)
        assert len(await h.platform.registry.list_for_organization(h.organization_id)) == 2


@pytest.mark.parametrize("row", ["newer binding", "newer field", "another target", "damaged", "gone"])
async def test_one_contract_that_cannot_be_read_or_run_costs_its_tool_and_not_the_run(database: str, row: str) -> None:
    world = World()
    async with harness(tools=[world.write(), world.read()], script=[SAVE, Say("Done.")], database_url=database) as h:
        run_id = await h.start()
        contract = h.platform.registry.freeze(["notes.save"])[0].spec
        written = json.loads(contract.contract_text())
        match row:
            case "newer binding":
                await refreeze(h, run_id, contract, {**written, "binding": {"type": "wasm", "module": "m"}})
            case "newer field":
                await refreeze(h, run_id, contract, {**written, "colour": "red"})
            case "another target":
                await refreeze(h, run_id, contract, {**written, "target": "sandbox"})
            case "damaged":
                await execute(h, "update agent.tool_contracts set spec = '{' where name = 'notes.save'")
            case _:
                await execute(h, "delete from agent.tool_contracts where name = 'notes.save'")
        assert (await h.settle(run_id)).state == "succeeded"
        assert await codes(h, run_id) == ["tool_unavailable", "ok"]
        assert world.of("notes.save") == []
        listed = {tool["name"]: tool for tool in await h.platform.catalogue.tools(h.organization_id)}
        assert listed["crm.search"]["readable"]
        if row != "gone":
            assert not (listed["notes.save"]["readable"] and listed["notes.save"]["executable"])


async def refreeze(h: Harness, run_id: UUID, old: ToolSpec, written: dict[str, Any]) -> None:
    """The run as another release of the package would have frozen it."""
    text = canonical(written).decode()
    new = digest_of(text.encode())
    await execute(
        h,
        "insert into agent.tool_contracts (contract_hash, name, version, spec) values (%(hash)s, 'notes.save', 1, %(spec)s)",
        hash=new,
        spec=text,
    )
    await execute(
        h,
        "update agent.runs set tools = replace(tools::text, %(old)s, %(new)s)::jsonb where id = %(run_id)s",
        old=old.contract_hash,
        new=new,
        run_id=run_id,
    )


async def test_a_definition_beyond_its_maximum_class_starts_no_run_and_opens_no_app(database: str) -> None:
    world = World()
    async with harness(tools=[world.write(), world.read()], script=[Say("Done.")], database_url=database) as h:
        bounded = h.agent.model_copy(update={"maximum_class": SideEffects.READ})
        with pytest.raises(ProgramFault, match=r"tested may not have notes\.save: it is a write"):
            await h.start(agent=bounded)
        assert await rows(h, "select id from agent.runs") == []
        run_id = await h.start(agent=bounded.model_copy(update={"tools": ("crm.search",)}))
        assert (await h.settle(run_id)).state == "succeeded"
        app = App(tools=[world.write(), world.read()], agents=[bounded], models=h.platform.app.models)
        with pytest.raises(ProgramFault, match=r"tested may not have notes\.save"):
            async with open_platform(app, database, bus=RecordingBus()):
                pass


class Remote:
    """Reaches a tool that arrived."""

    async def execute(self, ctx: CallContext, args: BaseModel) -> Any:
        return Done(id=f"found {args.model_dump()['q']}")


@pytest.mark.guarantee("T1")
async def test_a_tool_that_arrived_runs_like_any_other_for_its_own_organization_alone(database: str) -> None:
    spec = ToolSpec(
        name="mcp.wiki.search",
        description="Finds pages.",
        input_schema={"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"]},
        output_schema={},
        kind="mcp",
        binding=RemoteBinding(connection_id=uuid4(), remote_name="Search"),
        side_effects=SideEffects.READ,
        idempotency=IdempotencyClass.READ_ONLY,
        risk=Risk.LOW,
    )
    script: list[Turn] = [Calls([Call("mcp.wiki.search", {"q": "tea"})]), Say("Done.")]
    async with harness(tools=[World().read()], script=script, database_url=database) as h:
        report = h.platform.registry.register_dynamic(
            [spec], "mcp", organization_id=h.organization_id, handler=lambda _: Remote()
        )
        assert report.accepted == ("mcp.wiki.search",)
        agent = AgentDefinition(name="reader", instructions="Read.", model="scripted", tools=("mcp.wiki.search",))
        run_id = await h.start(agent=agent)
        assert (await h.settle(run_id)).state == "succeeded"
        assert await codes(h, run_id) == ["ok"]
        assert (await h.tree(run_id)).run["context_trust"] == "external"
        elsewhere = uuid4()
        with pytest.raises(ProgramFault, match=r"no tool is registered under mcp\.wiki\.search"):
            await h.platform.runs.start(
                agent, "Go.", principal=Principal(organization_id=elsewhere), request_key=str(uuid4())
            )
        seen_here = [tool["name"] for tool in await h.platform.catalogue.tools(h.organization_id)]
        seen_there = [tool["name"] for tool in await h.platform.catalogue.tools(elsewhere)]
        assert "mcp.wiki.search" in seen_here
        assert "mcp.wiki.search" not in seen_there
        await h.platform.catalogue.release(
            h.organization_id, "mcp.wiki.search", 1, state=ReleaseState.DEPRECATED, user_id=h.user_id
        )
        assert ("mcp.wiki.search", 1) not in (await h.platform.catalogue.live(elsewhere)).releases
