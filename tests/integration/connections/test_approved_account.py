"""The account of a call that must ask: known before a person is asked, named on the card, and the one that is used afterwards."""

from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, LiteralString
from uuid import UUID, uuid4

import pytest
from pydantic import BaseModel

from agentic.bootstrap import workflows
from agentic.contract.principal import Role
from agentic.runtime.agent.script import Turn
from agentic.runtime.workflow.phases import Done, Failed, Parked
from agentic.services.approvals.models import Approval, Verdict
from agentic.services.connections.envelope import VaultKeys
from agentic.services.connections.secrets import ApiKey
from agentic.services.connections.service import ConnectionService
from agentic.services.tools.context import CallContext
from agentic.services.tools.declarations import Tool, vendor_tool
from agentic.services.tools.handlers.http import GovernedClient
from agentic.storage.database import Database, Params
from agentic.storage.queries import load_queries
from agentic.testing import Call, Calls, Harness, Say, harness
from core_world import World, execute, journal
from workflow_flows import flow_app, flow_of, node, nothing
from workflow_stage import stage as workflow_stage

if TYPE_CHECKING:
    from tests.integration.connections.conftest import VaultStage

FIRST_KEY = "AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE="
SECOND_KEY = "AgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgI="


class Letter(BaseModel):
    text: str
    connection_id: str | None = None


class Sent(BaseModel):
    used: str


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENTIC_VAULT_KEYS", FIRST_KEY)


def sender(stage: "VaultStage", **declared: Any) -> Tool:
    """A send to the vendor behind the stage's server; the credential that arrives there tells which account was used."""

    @vendor_tool(
        "mail.send",
        "Sends a letter.",
        side_effects="send",
        idempotency="conditional",
        vendor_key_ttl_s=3600,
        watermark="at_transport",
        repeatable=False,
        connection="mail",
        **declared,
    )
    async def send(ctx: CallContext, args: Letter) -> Sent:
        async with GovernedClient(
            origin=stage.tokens.url,
            auth=ctx.connection.authorize,
            before_first_byte=ctx.before_first_byte,
            deadline=ctx.deadline,
            clock=ctx.clock,
        ) as client:
            await client.post_bytes("/send", args.text.encode())
        return Sent(used=ctx.connection.label)

    return send


def one(text: str = "hello", **arguments: Any) -> Call:
    return Call("mail.send", {"text": text, **arguments})


@asynccontextmanager
async def opened(stage: "VaultStage", tools: Sequence[Tool], *turns: Turn) -> AsyncIterator[Harness]:
    async with harness(
        tools=list(tools), script=[*turns, Say("Done.")], database_url=stage.database_url, connections="vault"
    ) as h:
        stage.organization_id = h.organization_id
        yield h


async def asked(h: Harness, run_id: UUID) -> Sequence[Approval]:
    """Every question of a run, whatever became of it."""
    return await h.platform.approvals.find(h.organization_id, run_id=run_id)


async def told(h: Harness, run_id: UUID) -> str:
    return "\n".join(text for role, text in await h.messages(run_id) if role == "tool")


def used(stage: "VaultStage") -> list[str]:
    """The credentials that reached the vendor, in order."""
    return [request.headers["authorization"].removeprefix("Bearer ") for request in stage.tokens.called]


@pytest.mark.guarantee("T1", "T2")
@pytest.mark.parametrize(
    ("states", "named", "code"),
    [
        ([], None, "connection_required"),
        (["needs_reauth"], None, "connection_expired"),
        (["revoked"], None, "connection_revoked"),
        (["connected", "connected"], None, "connection_ambiguous"),
        (["connected", "needs_reauth"], None, "connection_ambiguous"),
        (["connected"], "unknown", "not_found"),
        (["connected"], "foreign", "not_found"),
        (["connected"], "no id at all", "invalid_input"),
        (["connected", "revoked"], "the last", "connection_revoked"),
        (["connected", "needs_reauth"], "the last", "connection_expired"),
    ],
)
async def test_nobody_is_asked_about_a_call_that_has_no_account_to_act_in(
    stage: "VaultStage", states: list[str], named: str | None, code: str
) -> None:
    arguments: dict[str, Any] = {}
    async with opened(stage, [sender(stage)], lambda _: Calls([one(**arguments)])) as h:
        ids = [await _connected(stage, h, str(number), state) for number, state in enumerate(states)]
        foreign = await stage.service.add(uuid4(), "mail", ApiKey(value="api-key-value-x"), label="theirs")
        chosen = {"unknown": uuid4(), "foreign": foreign.id, "the last": ids[-1] if ids else None}
        if named is not None:
            arguments["connection_id"] = str(chosen.get(named, named))
        run_id = await h.start()
        settled = await h.settle(run_id)
        assert settled.state == "succeeded"
        assert await asked(h, run_id) == []
        [call] = await h.calls(run_id, "mail.send")
        assert (call["status"], call["code"]) == ("error", code)
        assert f'"reason_code":"{code}"' in await told(h, run_id)
        assert "theirs" not in await told(h, run_id)
        assert await journal(h, run_id) == []
    assert used(stage) == []


@pytest.mark.guarantee("B1")
@pytest.mark.parametrize(("length", "listed"), [(4, 10), (200, 7)])
async def test_of_many_accounts_the_model_reads_whole_lines_and_how_many_are_left(
    stage: "VaultStage", length: int, listed: int
) -> None:
    async with opened(stage, [sender(stage)], Calls([one()])) as h:
        made = [
            await stage.key(
                f"api-key-value-{number}", label=f"{number:02}".ljust(length, "x"), account={"email": "a" * length}
            )
            for number in range(12)
        ]
        run_id = await h.start()
        await h.settle(run_id)
        said = await told(h, run_id)
        assert [str(one.id) in said for one in made] == [True] * listed + [False] * (12 - listed)
        assert f"{12 - listed} more are not listed" in said


@pytest.mark.guarantee("A1", "B2")
async def test_the_card_names_the_account_and_no_secret_of_it(stage: "VaultStage") -> None:
    key = "api-key-value-of-ada"
    async with opened(stage, [sender(stage)], Calls([one(f"the key is {key}")])) as h:
        made = await stage.key(key, label="Ada's mail", account={"email": "ada@fjord.example", "grant_id": "g-1"})
        run_id = await h.start()
        [card] = (await h.settle(run_id)).pending
        assert (card.connection_id, card.account) == (made.id, "Ada's mail (ada@fjord.example)")
        assert key not in card.model_dump_json()
        assert [span["attributes"]["connection.id"] for span in await h.calls(run_id)] == [str(made.id)]
        await h.decide(run_id)
        assert (await h.settle(run_id)).state == "succeeded"
        assert [(entry["connection_id"], entry["approval_id"]) for entry in await journal(h, run_id)] == [
            (made.id, card.id)
        ]
    assert used(stage) == [key]


@pytest.mark.guarantee("A1", "A2")
@pytest.mark.parametrize(
    ("meanwhile", "code", "reached"),
    [
        ("another one is connected", None, ["api-key-value-1"]),
        ("it is replaced by another one", "connection_revoked", []),
        ("its consent ends", "connection_expired", []),
        ("it is connected again", None, ["api-key-value-3"]),
        ("the keys of the vault are changed", None, ["api-key-value-1"]),
    ],
)
async def test_an_approved_call_uses_the_account_that_was_shown_or_none(
    stage: "VaultStage", monkeypatch: pytest.MonkeyPatch, meanwhile: str, code: str | None, reached: list[str]
) -> None:
    monkeypatch.setenv("AGENTIC_VAULT_KEYS", f"{SECOND_KEY},{FIRST_KEY}")
    async with opened(stage, [sender(stage)], Calls([one()])) as h:
        first = await stage.key("api-key-value-1", label="first")
        run_id = await h.start()
        await h.settle(run_id)
        match meanwhile:
            case "another one is connected":
                await stage.key("api-key-value-2", label="second")
            case "it is replaced by another one":
                await stage.service.revoke(h.organization_id, first.id)
                await stage.key("api-key-value-2", label="second")
            case "its consent ends":
                await stage.key("api-key-value-2", label="second")
                await stage.store.reject(h.organization_id, first.id, version=first.version, reason="consent_ended")
            case "it is connected again":
                await stage.service.reconnect(h.organization_id, first.id, ApiKey(value="api-key-value-3"))
            case _:
                rotated = await ConnectionService(store=stage.store, keys=VaultKeys.from_environment()).rotate()
                assert rotated.rewrapped == 1
        await h.decide(run_id)
        assert (await h.settle(run_id)).state == "succeeded"
        assert len(await asked(h, run_id)) == 1, "nobody is asked a second time"
        call = (await h.calls(run_id, "mail.send"))[-1]
        assert call["code"] == code
        assert [entry["connection_id"] for entry in await journal(h, run_id)] == ([] if code else [first.id])
    assert used(stage) == reached


@pytest.mark.guarantee("A1")
async def test_an_open_question_keeps_its_account_while_others_of_the_turn_are_decided(stage: "VaultStage") -> None:
    async with opened(stage, [sender(stage)], Calls([one("one"), one("two")])) as h:
        await stage.key("api-key-value-1", label="first")
        run_id = await h.start()
        cards = (await h.settle(run_id)).pending
        assert [card.account for card in cards] == ["first", "first"]
        await stage.key("api-key-value-2", label="second")
        earlier = next(card for card in cards if '"one"' in card.arguments_text)
        await _decide(h, earlier.id)
        [left] = (await h.settle(run_id)).pending
        assert left.account == "first"
        await _decide(h, left.id)
        assert (await h.settle(run_id)).state == "succeeded"
        assert len(await asked(h, run_id)) == 2
    assert used(stage) == ["api-key-value-1"] * 2


@pytest.mark.guarantee("D5")
async def test_of_a_turn_s_calls_only_those_that_have_an_account_are_asked_about(stage: "VaultStage") -> None:
    chosen: dict[str, Any] = {}
    async with opened(stage, [sender(stage)], lambda _: Calls([one("one", **chosen), one("two")])) as h:
        chosen["connection_id"] = str((await stage.key("api-key-value-1", label="first")).id)
        await stage.key("api-key-value-2", label="second")
        run_id = await h.start()
        [card] = (await h.settle(run_id)).pending
        assert '"one"' in card.arguments_text
        await h.decide(run_id)
        assert (await h.settle(run_id)).state == "succeeded"
        codes = [call["code"] for call in await h.calls(run_id, "mail.send")]
        assert codes.count("connection_ambiguous") == 1
    assert used(stage) == ["api-key-value-1"]


@pytest.mark.guarantee("A1", "A5")
async def test_who_is_asked_anew_is_asked_about_the_account_there_is_then(stage: "VaultStage") -> None:
    async with opened(stage, [sender(stage)], Calls([one()])) as h:
        first = await stage.key("api-key-value-1", label="first")
        run_id = await h.start()
        [card] = (await h.settle(run_id)).pending
        await _decide(h, card.id)
        await stage.service.revoke(h.organization_id, first.id)
        await stage.key("api-key-value-2", label="second")
        await h.platform.approval_store.put_member(h.organization_id, h.user_id, Role.MEMBER)
        [again] = (await h.settle(run_id)).pending
        assert again.account == "second"
        await h.platform.approval_store.put_member(h.organization_id, h.user_id, Role.APPROVER)
        await _decide(h, again.id)
        assert (await h.settle(run_id)).state == "succeeded"
    assert used(stage) == ["api-key-value-2"]


@pytest.mark.parametrize(("several", "code"), [(False, None), (True, "connection_ambiguous")])
async def test_what_was_approved_before_accounts_were_shown_finds_its_account_as_it_did_then(
    stage: "VaultStage", several: bool, code: str | None
) -> None:
    async with opened(stage, [sender(stage)], Calls([one()])) as h:
        await stage.key("api-key-value-1", label="first")
        run_id = await h.start()
        await h.settle(run_id)
        await execute(h, "update agent.approvals set connection_id = null, account = null")
        if several:
            await stage.key("api-key-value-2", label="second")
        await h.decide(run_id)
        assert (await h.settle(run_id)).state == "succeeded"
        assert (await h.calls(run_id, "mail.send"))[-1]["code"] == code


@pytest.mark.guarantee("A6", "B2")
async def test_a_preview_names_its_account_and_cannot_act_in_it(stage: "VaultStage") -> None:
    tries: list[str] = []

    async def preview(ctx: CallContext, args: Any) -> str:
        for attempt in (ctx.connection.authorize, ctx.connection.reveal, ctx.connection.rejected):
            try:
                await attempt()
            except Exception as error:  # noqa: BLE001 - whatever keeps it from the credential
                tries.append(str(error))
        return f"from {ctx.connection.name}"

    tool = sender(stage, preview=preview, approval_preview=True)
    async with opened(stage, [tool], Calls([one()])) as h:
        made = await stage.key("api-key-value-1", label="Ada", account={"address": "ada@fjord.example"})
        run_id = await h.start()
        [card] = (await h.settle(run_id)).pending
        assert card.shown == "from Ada (ada@fjord.example)"
        assert len(tries) == 3
        assert all("preview" in said for said in tries)
        assert (await stage.row(made.id))["state"] == "connected", "a preview rejects nothing"
        await h.decide(run_id)
        assert (await h.settle(run_id)).state == "succeeded"
    assert used(stage) == ["api-key-value-1"]


async def test_asking_costs_one_statement_more_for_the_account_and_every_other_call_costs_what_it_did(
    stage: "VaultStage", monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: Counter[str] = Counter()
    whole = Database.all
    renew, of_provider = load_queries("runs")["renew"], load_queries("connections")["of_provider"]

    async def counted(self: Database, statement: LiteralString, params: Params) -> Any:
        if statement != renew:  # as often as a slow machine has it
            sent[statement] += 1
        return await whole(self, statement, params)

    monkeypatch.setattr(Database, "all", counted)

    def write(**declared: Any) -> Tool:
        @vendor_tool("mail.file", "Files a letter.", side_effects="write", repeatable=False, **declared)
        async def file(ctx: CallContext, args: Letter) -> Sent:
            return Sent(used="none")

        return file

    async def costs(risk: str, **declared: Any) -> tuple[Counter[str], Counter[str]]:
        """What the segment up to the park costs, or to the end where nobody is asked, and the one after the yes."""
        sides = []
        async with opened(stage, [write(risk=risk, **declared)], Calls([Call("mail.file", {"text": "hello"})])) as h:
            await stage.key("api-key-value-1", label="first")
            run_id = await h.start()
            for _ in range(2):
                sent.clear()
                await h.advance(run_id)
                sides.append(Counter(sent))
                await h.decide(run_id)
        return sides[0], sides[1]

    account = Counter({of_provider: 1})
    (plain, _), (acts, _) = await costs("low"), await costs("low", connection="mail")
    assert (acts - plain, plain - acts) == (account, Counter()), "a call that asks nobody"
    (plain, plain_run), (acts, acts_run) = await costs("medium"), await costs("medium", connection="mail")
    assert (acts - plain, plain - acts) == (account, Counter()), "a call that asks"
    assert (acts_run - plain_run, plain_run - acts_run) == (account, Counter()), "the same call when it runs"


@pytest.mark.guarantee("T2")
@pytest.mark.parametrize(("accounts", "code"), [(0, "connection_required"), (1, None), (2, "connection_ambiguous")])
async def test_a_node_of_a_workflow_asks_nobody_without_an_account(
    stage: "VaultStage", accounts: int, code: str | None
) -> None:
    world = World()
    tools = [world.send()]
    app = replace(flow_app(nothing, tools), connections=None)  # those of the database
    async with workflow_stage(stage.database_url, app, serve=False) as s:
        stage.organization_id = s.organization_id
        for number in range(accounts):
            await stage.key(f"api-key-value-{number}", label=f"account {number}")
        phase = await workflows(s.platform).leader.run(flow_of(s, tools), node("send", "mail.send"))
        cards = await s.platform.approvals.find(s.organization_id)
        if code is None:
            assert isinstance(phase, Parked)
            assert [card.account for card in cards] == ["account 0"]
        else:
            assert isinstance(phase, Done | Failed)
            assert code in repr(phase)
            assert cards == []
    assert world.effects == []


async def _connected(stage: "VaultStage", h: Harness, label: str, state: str) -> UUID:
    made = await stage.key(f"api-key-value-{label}", label=label)
    if state == "needs_reauth":
        await stage.store.reject(h.organization_id, made.id, version=made.version, reason="rejected_by_vendor")
    if state == "revoked":
        await stage.service.revoke(h.organization_id, made.id)
    return made.id


async def _decide(h: Harness, approval_id: UUID) -> None:
    await h.platform.approvals.decide(h.organization_id, approval_id, user_id=h.user_id, verdict=Verdict.APPROVED)
