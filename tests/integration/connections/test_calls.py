"""A call and its account: the stable codes, the choice, the replay on the same account, and a credential that is nowhere."""

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from uuid import UUID, uuid4

import pytest
from pydantic import BaseModel

from agentic.contract.principal import Role
from agentic.runtime.agent.script import Turn
from agentic.services.connections.secrets import ApiKey, OAuthSecret
from agentic.services.tools.context import CallContext
from agentic.services.tools.declarations import Tool, vendor_tool
from agentic.services.tools.execution import Execution
from agentic.services.tools.handlers.errors import OutcomeUnknown
from agentic.services.tools.handlers.http import GovernedClient
from agentic.testing import Call, Calls, Harness, Say, harness
from core_world import execute, journal, rows
from telemetry_recorder import recorded

if TYPE_CHECKING:
    from tests.integration.connections.conftest import VaultStage

FIRST_KEY = "AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE="
SECRET = "api-key-value-of-ada"


class Letter(BaseModel):
    text: str


class LetterFrom(BaseModel):
    text: str
    connection_id: UUID | None = None


class Sent(BaseModel):
    used: str


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENTIC_VAULT_KEYS", FIRST_KEY)


def sender(
    stage: "VaultStage", model: type[Letter] | type[LetterFrom] = Letter, *, quotes: bool = False, **declared: Any
) -> Tool:
    """A send to the vendor behind the stage's server, at transport."""
    fields = {"idempotency": "conditional", "vendor_key_ttl_s": 3600, "watermark": "at_transport", **declared}

    async def send(ctx: CallContext, args: Any) -> Sent:
        async with GovernedClient(
            origin=stage.tokens.url,
            auth=ctx.connection.authorize,
            before_first_byte=ctx.before_first_byte,
            deadline=ctx.deadline,
            clock=ctx.clock,
        ) as client:
            reply = await client.post_bytes("/send", args.text.encode())
        if reply.status == 401:
            raise await ctx.connection.rejected()
        if reply.status != 200:
            raise OutcomeUnknown("the vendor's answer is indefinite", status=reply.status)
        told = await ctx.connection.reveal() if quotes else "nothing"
        return Sent(used=f"{ctx.connection.label} {told} {ctx.connection!r}")

    send.__annotations__ = {"ctx": CallContext, "args": model, "return": Sent}
    return vendor_tool(
        "mail.send", "Sends a letter.", side_effects="send", repeatable=False, connection="mail", **fields
    )(send)


@asynccontextmanager
async def opened(stage: "VaultStage", tools: Sequence[Tool], *turns: Turn) -> AsyncIterator[Harness]:
    async with harness(
        tools=list(tools), script=[*turns, Say("Done.")], database_url=stage.database_url, connections="vault"
    ) as h:
        stage.organization_id = h.organization_id
        yield h


async def sent(h: Harness) -> tuple[UUID, dict[str, Any]]:
    """Lead a run of one send to its end, a person approving; the run and the call."""
    run_id = await h.start()
    await h.settle(run_id)
    await h.decide(run_id)
    await h.settle(run_id)
    return run_id, dict((await h.calls(run_id, "mail.send"))[-1])


def one(text: str = "hello", **arguments: Any) -> Calls:
    return Calls([Call("mail.send", {"text": text, **arguments})])


async def told(h: Harness, run_id: UUID) -> str:
    return "\n".join(text for role, text in await h.messages(run_id) if role == "tool")


@pytest.mark.guarantee("T2")
@pytest.mark.parametrize(
    ("states", "code"),
    [
        ([], "connection_required"),
        (["needs_reauth"], "connection_expired"),
        (["revoked"], "connection_revoked"),
        (["connected", "connected"], "connection_ambiguous"),
    ],
)
async def test_an_expired_revoked_or_ambiguous_connection_maps_to_a_stable_error_code(
    stage: "VaultStage", states: list[str], code: str
) -> None:
    async with opened(stage, [sender(stage)], one()) as h:
        for number, state in enumerate(states):
            made = await stage.key(f"api-key-value-{number}", label=str(number))
            if state == "needs_reauth":
                await stage.store.reject(h.organization_id, made.id, version=made.version, reason="rejected_by_vendor")
            if state == "revoked":
                await stage.service.revoke(h.organization_id, made.id)
        run_id, call = await sent(h)
        assert (call["status"], call["code"]) == ("error", code)
        assert f'"reason_code":"{code}"' in await told(h, run_id)
        assert await journal(h, run_id) == [], "nothing is claimed"
        assert stage.tokens.called == []


async def test_the_model_chooses_among_the_accounts_of_its_organization(stage: "VaultStage") -> None:
    async with opened(stage, [sender(stage, LetterFrom)]) as h:
        ada = await stage.key("api-key-value-ada", label="Ada")
        await stage.key("api-key-value-per", label="Per")
        foreign = await stage.service.add(uuid4(), "mail", ApiKey(value="api-key-value-x"), label="theirs")
    for choice, code in ((None, "connection_ambiguous"), (foreign.id, "not_found"), (uuid4(), "not_found")):
        arguments = {} if choice is None else {"connection_id": str(choice)}
        organization = stage.organization_id
        async with opened(stage, [sender(stage, LetterFrom)], one(**arguments)) as h:
            h.organization_id = stage.organization_id = organization
            await h.platform.approval_store.put_member(organization, h.user_id, Role.ADMIN)
            run_id, call = await sent(h)
            assert call["code"] == code
            if choice is None:
                assert f"{ada.id} Ada" in await told(h, run_id)
            assert "theirs" not in await told(h, run_id)
    async with opened(stage, [sender(stage, LetterFrom)], one(connection_id=str(ada.id))) as h:
        h.organization_id = stage.organization_id = organization
        await h.platform.approval_store.put_member(organization, h.user_id, Role.ADMIN)
        run_id, call = await sent(h)
        assert call["status"] == "ok"
        assert [entry["connection_id"] for entry in await journal(h, run_id)] == [ada.id]
    assert [asked.headers["authorization"] for asked in stage.tokens.called] == ["Bearer api-key-value-ada"]


@pytest.mark.guarantee("B2")
async def test_a_credential_is_in_no_row_log_span_event_or_message(
    stage: "VaultStage", caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    async with opened(stage, [sender(stage, quotes=True)], one()) as h:
        await stage.consent()
        stage.tokens.rotating = True
        with recorded() as telemetry:
            run_id, call = await sent(h)
        assert call["status"] == "ok"
        assert "[redacted]" in await told(h, run_id)
        tables = await rows(
            h,
            "select c.relname as name from pg_class c join pg_namespace n on n.oid = c.relnamespace "
            "where n.nspname = 'agent' and c.relkind in ('r', 'p') and not c.relispartition",
        )
        everything = [
            caplog.text,
            repr([(s.name, s.attributes, s.events, s.status) for s in telemetry.spans]),
            repr(h.bus.events),
        ]
        for table in tables:
            for row in await h.platform.database.all(f"select t::text as whole, t.* from agent.{table['name']} t", {}):
                everything += [
                    row["whole"],
                    *(bytes(v).decode("latin-1") for v in row.values() if isinstance(v, bytes)),
                ]
        secrets = ("token-value-", "refresh-value-", "client-secret-of-ada")
        for text in everything:
            for secret in secrets:
                assert secret not in text
                assert secret.encode().hex() not in text
    assert stage.tokens.called[0].headers["authorization"] == "Bearer token-value-1"


@pytest.mark.guarantee("J7")
async def test_a_call_whose_outcome_is_unknown_is_repeated_on_the_same_account(stage: "VaultStage") -> None:
    async with opened(stage, [sender(stage)], one()) as h:
        await stage.key("api-key-value-1", label="first")
        stage.tokens.vendor_status = [504]
        _, call = await sent(h)
        assert call["status"] == "ok"
    assert [asked.headers["authorization"] for asked in stage.tokens.called] == ["Bearer api-key-value-1"] * 2


@pytest.mark.guarantee("J7", "J3")
@pytest.mark.parametrize("changed", ["another one too", "another one instead"])
async def test_a_held_call_never_slips_to_another_account(stage: "VaultStage", changed: str) -> None:
    async with opened(stage, [sender(stage, timeout_s=3)], one()) as h:
        first = await stage.key("api-key-value-1", label="first")
        stage.tokens.vendor_status = [504, 504, 504]
        run_id = await h.start()
        await h.settle(run_id)
        await h.decide(run_id)
        await h.advance(run_id)
        (held,) = await journal(h, run_id)
        assert (held["state"], held["connection_id"]) == ("processing", first.id)

        await stage.key("api-key-value-2", label="second")
        if changed == "another one instead":
            await stage.service.revoke(h.organization_id, first.id)
        await execute(
            h, "update agent.idempotency_keys set lease_expires_at = clock_timestamp() where state = 'processing'"
        )
        await execute(h, "update agent.runs set due_at = clock_timestamp()")
        await h.settle(run_id)
        (entry,) = await journal(h, run_id)
        assert entry["connection_id"] == first.id
        assert entry["state"] == ("completed" if changed == "another one too" else "uncertain")
    assert {asked.headers["authorization"] for asked in stage.tokens.called} == {"Bearer api-key-value-1"}


@pytest.mark.guarantee("J6")
async def test_a_refused_renewal_leaves_no_claim_and_the_same_call_works_once_it_is_connected_again(
    stage: "VaultStage",
) -> None:
    made: list[UUID] = []
    found: list[Any] = []

    @vendor_tool("desk.wait", "Waits for the person.", idempotency="read_only")
    async def person(ctx: CallContext, args: Letter) -> Sent:
        found.append((await stage.row(made[0]))["state"])
        found.append(await stage.database.all("select * from agent.idempotency_keys", {}))
        secret = OAuthSecret(client_id="ada", client_secret="client-secret-2", refresh_token="refresh-value-new")
        await stage.service.reconnect(ctx.organization_id, made[0], secret)
        return Sent(used="")

    turns = [one(), Calls([Call("desk.wait", {"text": "a moment"})]), one()]
    async with opened(stage, [sender(stage), person], *turns) as h:
        made.append((await stage.consent()).id)
        stage.tokens.answers = [(400, {"error": "invalid_grant"})]
        run_id = await h.start()
        while (await h.settle(run_id)).pending:
            await h.decide(run_id)
        assert found == ["needs_reauth", []]
        codes = [call["code"] for call in await h.calls(run_id, "mail.send")]
        assert "connection_expired" in codes
        assert [entry["state"] for entry in await journal(h, run_id)] == ["completed"]
    assert len(stage.tokens.called) == 1


@pytest.mark.guarantee("J3", "J5")
@pytest.mark.parametrize("gone", [False, True])
async def test_a_probe_asks_in_the_account_the_call_was_claimed_for_or_an_operator_is_asked(
    stage: "VaultStage", gone: bool
) -> None:
    async def probe(ctx: CallContext, args: Any) -> Sent:
        return Sent(used=f"{ctx.connection.label} {await ctx.connection.reveal()}")

    tool = replace(
        sender(stage, idempotency="non_idempotent", vendor_key_ttl_s=None, may_repeat_because="a test"), probe=probe
    )
    async with opened(stage, [tool], one()) as h:
        first = await stage.key("api-key-value-1", label="first")
        run_id = await h.start()
        await h.settle(run_id)
        await h.decide(run_id)
        with pytest.MonkeyPatch.context() as power:
            power.setattr(Execution, "effect", _dies)
            await h.advance(run_id)
        await execute(
            h,
            "update agent.idempotency_keys set effect_sent_at = clock_timestamp(), lease_expires_at = clock_timestamp()",
        )
        await execute(h, "update agent.runs set due_at = clock_timestamp(), lease_expires_at = clock_timestamp()")
        await stage.key("api-key-value-2", label="second")
        if gone:
            await stage.service.revoke(h.organization_id, first.id)
        await h.settle(run_id)
        (entry,) = await journal(h, run_id)
        assert entry["state"] == ("uncertain" if gone else "completed")
        assert ("first [redacted]" in await told(h, run_id)) is not gone
    assert stage.tokens.called == []


async def _dies(*_: object) -> Any:
    raise RuntimeError("the worker dies between its claim and its effect")


@pytest.mark.guarantee("J6")
async def test_an_endpoint_that_gives_no_token_is_a_refusal_before_anything_was_sent(stage: "VaultStage") -> None:
    async with opened(stage, [sender(stage)], one()) as h:
        await stage.client()
        stage.tokens.answers = [(503, {})]
        run_id, call = await sent(h)
        assert (call["status"], call["code"]) == ("error", "retryable_upstream")
        assert await journal(h, run_id) == []
        assert stage.tokens.called == []


async def test_a_key_that_the_vendor_rejects_must_be_connected_again(stage: "VaultStage") -> None:
    async with opened(stage, [sender(stage)], one()) as h:
        made = await stage.key(SECRET)
        stage.tokens.vendor_status = [401]
        _, call = await sent(h)
        assert call["code"] == "connection_expired"
        assert (await stage.row(made.id))["reauth_reason"] == "rejected_by_vendor"


async def test_arguments_that_repeat_the_credential_are_claimed_without_it(stage: "VaultStage") -> None:
    async with opened(stage, [sender(stage)], one(f"the key is {SECRET}")) as h:
        await stage.key(SECRET)
        run_id, call = await sent(h)
        assert call["status"] == "ok"
        assert SECRET not in json.dumps(await journal(h, run_id), default=str)


async def test_a_read_and_its_connection(stage: "VaultStage") -> None:
    @vendor_tool("mail.search", "Searches.", connection="mail")
    async def search(ctx: CallContext, args: Letter) -> Sent:
        return Sent(used=f"{ctx.connection.account['address']} {await ctx.connection.reveal()}")

    async with opened(stage, [search], Calls([Call("mail.search", {"text": "x"})])) as h:
        made = await stage.key(SECRET, account={"address": "ada@fjord.example"})
        run_id = await h.start()
        await h.settle(run_id)
        (call,) = await h.calls(run_id)
        assert "ada@fjord.example [redacted]" in await told(h, run_id)
        assert call["attributes"]["connection.id"] == str(made.id)


async def test_a_locked_vault_is_a_fault_of_the_deployment_and_claims_nothing(
    stage: "VaultStage", monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AGENTIC_VAULT_KEYS")
    async with opened(stage, [sender(stage)], one()) as h:
        await stage.key(SECRET)
        run_id = await h.start()
        await h.settle(run_id)
        await h.decide(run_id)
        await h.advance(run_id)
        assert await journal(h, run_id) == []
    assert stage.tokens.called == []
