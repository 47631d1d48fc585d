"""Renewing tokens: one request however many ask, nothing lost when somebody dies, and a person asked when the server says no."""

import asyncio
import os
import sys
import traceback
from typing import TYPE_CHECKING, Any

import pytest

from agentic.contract.clock import SystemClock
from agentic.contract.errors import StorageUnavailable
from agentic.services.connections.secrets import ApiKey, OAuthSecret
from agentic.services.connections.vault import Vault
from agentic.services.tools.handlers.errors import ConnectionUnusable, RetryableUpstreamError
from agentic.storage.connection_store import PostgresConnectionStore

if TYPE_CHECKING:
    from tests.integration.connections.conftest import VaultStage

BOUND_S = 30


async def bare(stage: "VaultStage", vault: Vault) -> str:
    return (await (await stage.credential(vault)).present()).bare


async def due(stage: "VaultStage") -> None:
    await stage.change("update agent.connections set renew_at = clock_timestamp() - interval '1 second'")


async def test_a_client_gets_a_token_at_its_first_use_and_keeps_it(stage: "VaultStage") -> None:
    await stage.client()
    vault, other = await stage.process(), await stage.process()
    assert stage.tokens.asked == [], "nothing is asked when a connection is made, nor when it is resolved"
    assert [await bare(stage, vault) for vault in (vault, other, vault)] == ["token-value-1"] * 3
    (asked,) = stage.tokens.asked
    assert asked.form == {"grant_type": "client_credentials", "scope": "mail.send"}
    assert asked.headers["authorization"].startswith("Basic ")


async def test_a_token_is_renewed_a_minute_before_its_end(stage: "VaultStage") -> None:
    made = await stage.client()
    await bare(stage, await stage.process())
    row = await stage.row(made.id)
    assert (row["expires_at"] - row["renew_at"]).total_seconds() == pytest.approx(60, abs=0.1)
    await due(stage)
    assert await bare(stage, await stage.process()) == "token-value-2"


@pytest.mark.parametrize(("lifetime_s", "until_renewal_s"), [(40, 20), ("40", 20), (None, 240)])
async def test_a_short_or_unsaid_life_is_not_renewed_at_every_use(
    stage: "VaultStage", lifetime_s: Any, until_renewal_s: float
) -> None:
    made = await stage.client()
    stage.tokens.lifetime_s = lifetime_s
    vault = await stage.process()
    assert [await bare(stage, vault), await bare(stage, vault)] == ["token-value-1"] * 2
    row = await stage.row(made.id)
    assert (row["renew_at"] - row["updated_at"]).total_seconds() == pytest.approx(until_renewal_s, abs=1)
    assert (row["expires_at"] is None) == (lifetime_s is None)


async def test_a_consent_uses_the_refresh_token_it_was_given_last(stage: "VaultStage") -> None:
    await stage.consent()
    stage.tokens.rotating = True
    for number in (1, 2, 3):
        assert await bare(stage, await stage.process()) == f"token-value-{number}"
        await due(stage)
    assert [asked.form["refresh_token"] for asked in stage.tokens.asked] == [
        "refresh-value-0",
        "refresh-value-1",
        "refresh-value-2",
    ]


async def test_however_many_calls_of_however_many_processes_ask_one_request_is_made(stage: "VaultStage") -> None:
    await stage.consent()
    vaults = [await stage.process() for _ in range(2)]
    stage.tokens.open.clear()
    credentials = [await stage.credential(vault) for vault in vaults for _ in range(4)]
    asking = [asyncio.create_task(credential.present()) for credential in credentials]
    async with asyncio.timeout(BOUND_S):
        await stage.tokens.arrived.wait()
        held = await stage.database.one(
            "select count(*) as n from pg_stat_activity where datname = current_database() and state like 'idle in%%'",
            {},
        )
        assert held is not None
        assert held["n"] == 0, "no transaction, and so no lock, is held over the request"
        stage.tokens.open.set()
        presented = await asyncio.gather(*asking)
    assert {each.bare for each in presented} == {"token-value-1"}
    assert len(stage.tokens.asked) == 1


async def test_a_process_that_is_killed_while_it_renews_leaves_the_next_one_to_do_it(stage: "VaultStage") -> None:
    made = await stage.client()
    stage.tokens.open.clear()
    child = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "vault_child",
        str(stage.organization_id),
        "mail",
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join(sys.path),
            "AGENTIC_CHILD_DATABASE_URL": stage.database_url,
            "AGENTIC_VAULT_KEYS": "AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE=",
        },
    )
    async with asyncio.timeout(BOUND_S):
        await stage.tokens.arrived.wait()
        child.kill()
        await child.wait()
    stage.tokens.open.set()
    row = await stage.row(made.id)
    assert row["refresh_lease_expires_at"] is not None
    assert row["state"] == "connected"
    vault = await stage.process()
    waiting = asyncio.create_task(bare(stage, vault))
    await stage.change("update agent.connections set refresh_lease_expires_at = clock_timestamp()")
    async with asyncio.timeout(BOUND_S):
        assert await waiting == "token-value-2"
    assert (await stage.row(made.id))["refresh_fence"] == row["refresh_fence"] + 1


async def test_whoever_comes_back_after_its_lease_stores_nothing(stage: "VaultStage") -> None:
    made = await stage.client()
    first = await stage.store.take_refresh(stage.organization_id, made.id, lease_s=30)
    assert first is not None
    assert await stage.store.take_refresh(stage.organization_id, made.id, lease_s=30) is None
    await stage.change("update agent.connections set refresh_lease_expires_at = clock_timestamp()")
    assert await bare(stage, await stage.process()) == "token-value-1"
    before = await stage.row(made.id)
    assert first.sealed is not None
    key, fence = (stage.organization_id, made.id), first.refresh_fence
    late = await stage.store.store_tokens(*key, fence=fence, sealed=first.sealed, lifetime_s=9, expires=True)
    assert late is None
    assert not await stage.store.refuse_refresh(*key, fence=fence, reason="invalid_grant")
    assert await stage.row(made.id) == before


async def test_a_call_that_runs_out_of_time_leaves_the_renewal_to_its_end(stage: "VaultStage") -> None:
    await stage.consent()
    stage.tokens.rotating = True
    stage.tokens.open.clear()
    vault = await stage.process()
    call = asyncio.create_task(bare(stage, vault))
    async with asyncio.timeout(BOUND_S):
        await stage.tokens.arrived.wait()
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        stage.tokens.open.set()
        await vault.aclose()
    assert await bare(stage, await stage.process()) == "token-value-1"
    assert len(stage.tokens.asked) == 1, "the refresh token that came with it is kept"


@pytest.mark.parametrize("answer", [(400, {"error": "invalid_grant"}), (401, {"error": "invalid_client"})])
async def test_a_refused_renewal_asks_for_a_person_and_nobody_asks_the_server_again(
    stage: "VaultStage", answer: tuple[int, Any]
) -> None:
    made = await stage.consent()
    vaults = [await stage.process() for _ in range(2)]
    credentials = [await stage.credential(vault) for vault in vaults]
    stage.tokens.answers = [answer]
    for credential in credentials:
        with pytest.raises(ConnectionUnusable) as refused:
            await credential.present()
        assert refused.value.code == "connection_expired"
    row = await stage.row(made.id)
    assert (row["state"], row["reauth_reason"]) == ("needs_reauth", answer[1]["error"])
    assert len(stage.tokens.asked) == 1


@pytest.mark.parametrize("answer", [(503, {}), (400, {"error": "server_error"}), (200, b"<html>"), (200, None)])
async def test_a_renewal_that_brings_nothing_may_be_tried_again_at_once(
    stage: "VaultStage", answer: tuple[int, Any]
) -> None:
    made = await stage.client()
    vault = await stage.process()
    stage.tokens.answers = [answer]
    with pytest.raises(RetryableUpstreamError, match="nothing was sent"):
        await bare(stage, vault)
    assert (await stage.row(made.id))["state"] == "connected"
    assert await bare(stage, vault) == "token-value-2"


async def test_an_endpoint_that_is_not_there_is_nothing_the_person_has_to_mend(stage: "VaultStage") -> None:
    stage.tokens.url = "http://127.0.0.1:1"
    made = await stage.client()
    with pytest.raises(RetryableUpstreamError):
        await bare(stage, await stage.process())
    row = await stage.row(made.id)
    assert (row["state"], row["refresh_lease_expires_at"]) == ("connected", None)


@pytest.mark.parametrize("ends", ["revoked", "replaced"])
async def test_a_connection_that_changes_during_the_request_keeps_what_a_person_made_of_it(
    stage: "VaultStage", ends: str
) -> None:
    made = await stage.consent()
    stage.tokens.open.clear()
    vault = await stage.process()
    call = asyncio.create_task(bare(stage, vault))
    async with asyncio.timeout(BOUND_S):
        await stage.tokens.arrived.wait()
        if ends == "revoked":
            await stage.service.revoke(stage.organization_id, made.id)
            stage.tokens.open.set()
            with pytest.raises(ConnectionUnusable) as refused:
                await call
            assert refused.value.code == "connection_revoked"
            assert (await stage.row(made.id))["sealed"] is None
            return
        secret = OAuthSecret(client_id="ada", client_secret="client-secret-2", refresh_token="refresh-value-new")
        await stage.service.reconnect(stage.organization_id, made.id, secret)
        stage.tokens.open.set()
        assert await call == "token-value-2"
    assert [asked.form["refresh_token"] for asked in stage.tokens.asked] == ["refresh-value-0", "refresh-value-new"]


async def test_a_token_that_the_vendor_rejects_is_renewed_once_and_then_a_person_is_asked(stage: "VaultStage") -> None:
    made = await stage.client()
    await bare(stage, await stage.process())
    vault = await stage.process()
    first = await stage.credential(vault)
    await first.present()
    assert isinstance(await first.rejected(), RetryableUpstreamError)
    second = await stage.credential(vault)
    assert (await second.present()).bare == "token-value-2"
    assert isinstance(await second.rejected(), ConnectionUnusable)
    assert (await stage.row(made.id))["state"] == "needs_reauth"


async def test_a_late_rejection_of_an_old_token_leaves_the_new_one(stage: "VaultStage") -> None:
    await stage.client()
    await bare(stage, await stage.process())
    slow = await stage.credential(await stage.process())
    await due(stage)
    assert await bare(stage, await stage.process()) == "token-value-2"
    await slow.rejected()
    assert await bare(stage, await stage.process()) == "token-value-2"
    assert len(stage.tokens.asked) == 2


async def test_a_database_that_is_gone_for_a_moment_loses_no_token(stage: "VaultStage") -> None:
    await stage.consent()
    stage.tokens.rotating = True

    class Shaky(PostgresConnectionStore):
        fails = 2

        async def store_tokens(self, *key: Any, **what: Any) -> Any:
            stored = await super().store_tokens(*key, **what) if self.fails == 1 else None
            if self.fails:
                self.fails -= 1
                raise StorageUnavailable("on purpose, before the statement and then after it")
            return stored or await super().store_tokens(*key, **what)

    vault = Vault(store=Shaky(stage.database), keys=stage.keys, clock=SystemClock())
    assert await bare(stage, vault) == "token-value-1"
    assert len(stage.tokens.asked) == 1


@pytest.mark.guarantee("B2")
async def test_no_secret_is_in_a_log_an_error_or_a_repr(stage: "VaultStage", caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG")
    await stage.consent()
    vault = await stage.process()
    stage.tokens.answers = [(200, b"<html>"), (400, {"error": "invalid_grant", "error_description": "refresh-value-0"})]
    told = []
    for _ in range(2):
        credential = await stage.credential(vault)
        told += [repr(credential), repr(vars(vault))]
        with pytest.raises((RetryableUpstreamError, ConnectionUnusable)) as failed:
            await credential.present()
        # as a collector of errors would send it: the text, and the variables of every frame of ours
        frames = [frame for frame, _ in traceback.walk_tb(failed.value.__traceback__)]
        told += [str(failed.value)]
        told += [repr(frame.f_locals) for frame in frames if "services/connections" in frame.f_code.co_filename]
        assert len(frames) > 3
    row = repr(await stage.row((await stage.service.list(stage.organization_id))[0].id))
    await stage.key("api-key-value-9")
    told += [
        caplog.text,
        row,
        repr(await stage.service.list(stage.organization_id)),
        repr(ApiKey(value="api-key-value")),
    ]
    for text in told:
        assert "refresh-value" not in text
        assert "client-secret" not in text
        assert "api-key-value" not in text
