"""What becomes of a connection's row: its states, its tenant, and a secret that opens there and nowhere else."""

from typing import TYPE_CHECKING
from uuid import uuid4

import psycopg
import pytest

from agentic.contract.errors import Conflict, NotFound
from agentic.contract.results import ErrorCode
from agentic.services.connections.envelope import VaultKeys, VaultLocked
from agentic.services.connections.models import ConnectionState
from agentic.services.connections.secrets import ApiKey, OAuthSecret
from agentic.services.tools.connections import Unconnected

if TYPE_CHECKING:
    from tests.integration.connections.conftest import VaultStage

KEY_2 = bytes([2]) * 32


async def test_an_api_key_is_presented_as_its_connection_says(stage: "VaultStage") -> None:
    bearer = await stage.key("api-key-value-1", label="one")
    named = await stage.key("api-key-value-2", label="two", header="X-Api-Key")
    vault = await stage.process()
    presented = [await (await stage.credential(vault, one.id)).present() for one in (bearer, named)]
    assert [(each.header, each.value) for each in presented] == [
        ("authorization", "Bearer api-key-value-1"),
        ("x-api-key", "api-key-value-2"),
    ]


async def test_a_revoked_connection_has_no_secret_and_stays_revoked(stage: "VaultStage") -> None:
    made = await stage.key()
    revoked = await stage.service.revoke(stage.organization_id, made.id)
    again = await stage.service.revoke(stage.organization_id, made.id)
    row = await stage.row(made.id)
    assert revoked.state is again.state is ConnectionState.REVOKED
    assert revoked.revoked_at == again.revoked_at
    assert (row["sealed"], row["wrapped_key"], row["key_id"]) == (None, None, None)
    with pytest.raises(Conflict, match="revoked"):
        await stage.service.reconnect(stage.organization_id, made.id, ApiKey(value="api-key-value-9"))
    await stage.key()  # its label is free again


async def test_a_connection_that_needs_a_person_is_connected_again_with_a_new_secret(stage: "VaultStage") -> None:
    made = await stage.key("api-key-value-1")
    vault = await stage.process()
    rejected = await (await stage.credential(vault)).rejected()
    assert (rejected.code, (await stage.row(made.id))["state"]) == ("connection_expired", "needs_reauth")
    found = await vault.resolve(organization_id=stage.organization_id, provider="mail", connection_id=None)
    assert isinstance(found, Unconnected)
    assert found.code == "connection_expired"

    await stage.service.reconnect(stage.organization_id, made.id, ApiKey(value="api-key-value-2"))
    assert (await (await stage.credential(vault)).present()).bare == "api-key-value-2"


async def test_a_late_rejection_of_the_old_secret_leaves_the_new_one_connected(stage: "VaultStage") -> None:
    made = await stage.key("api-key-value-1")
    slow = await stage.credential(await stage.process())
    await stage.service.reconnect(stage.organization_id, made.id, ApiKey(value="api-key-value-2"))
    await slow.rejected()
    assert (await stage.row(made.id))["state"] == "connected"


@pytest.mark.parametrize(
    ("change", "constraint"),
    [
        ("set state = 'connected', revoked_at = null", "connections_revoked_stays"),
        ("set provider = 'other'", "connections_identity"),
        ("set organization_id = gen_random_uuid()", "connections_identity"),
        ("set sealed = 'x', wrapped_key = 'x', key_id = 'x'", "connections_revoked_is_forgotten"),
    ],
)
async def test_the_database_itself_keeps_a_connection_what_it_is(
    stage: "VaultStage", change: str, constraint: str
) -> None:
    made = await stage.key()
    await stage.service.revoke(stage.organization_id, made.id)
    with pytest.raises(psycopg.errors.IntegrityError) as refused:
        await stage.change(f"update agent.connections {change} where id = %(id)s", id=made.id)
    assert refused.value.diag.constraint_name == constraint


@pytest.mark.guarantee("T1")
async def test_another_organization_sees_nothing_and_changes_nothing(stage: "VaultStage") -> None:
    made = await stage.consent()
    await stage.change("update agent.connections set renew_at = clock_timestamp() + interval '1 hour'")
    stranger, store, service = uuid4(), stage.store, stage.service
    before = await stage.row(made.id)

    assert await store.read(stranger, made.id) is None
    assert await store.list(stranger) == []
    assert await store.of_provider(stranger, "mail", made.id) == []
    assert made.sealed is not None
    assert await store.reconnect(stranger, made.id, made.sealed) is None
    assert await store.revoke(stranger, made.id) is None
    assert await store.take_refresh(stranger, made.id, lease_s=30) is None
    fence, version = made.refresh_fence, made.version
    assert (
        await store.store_tokens(stranger, made.id, fence=fence, sealed=made.sealed, lifetime_s=9, expires=True) is None
    )
    assert not await store.end_refresh(stranger, made.id, fence=fence)
    assert not await store.refuse_refresh(stranger, made.id, fence=fence, reason="x")
    assert not await store.reject(stranger, made.id, version=version, reason="x")
    assert not await store.expire(stranger, made.id, version=version)
    assert not await store.rewrap(stranger, made.id, version=version, sealed=made.sealed)
    for act in (
        service.check(stranger, made.id),
        service.revoke(stranger, made.id),
        service.reconnect(stranger, made.id, OAuthSecret(client_id="a", client_secret="b" * 9, refresh_token="c" * 9)),
    ):
        with pytest.raises(NotFound):
            await act
    vault = await stage.process()
    for connection_id, code in ((made.id, "not_found"), (uuid4(), "not_found"), (None, "connection_required")):
        found = await vault.resolve(organization_id=stranger, provider="mail", connection_id=connection_id)
        assert isinstance(found, Unconnected)
        assert found.code == code
    assert await stage.row(made.id) == before


@pytest.mark.guarantee("T1")
@pytest.mark.parametrize("role", ["anon", "authenticated"])
async def test_no_role_of_a_browser_reads_a_row(stage: "VaultStage", role: str) -> None:
    await stage.key()
    async with stage.database.pool.connection() as connection, connection.transaction(force_rollback=True):
        await connection.execute(f"set local role {role}")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            await connection.execute("select id from agent.connections")


async def test_an_id_of_another_provider_is_not_found(stage: "VaultStage") -> None:
    made = await stage.key()
    vault = await stage.process()
    found = await vault.resolve(organization_id=stage.organization_id, provider="crm", connection_id=made.id)
    assert isinstance(found, Unconnected)
    assert found.code == "not_found"


@pytest.mark.guarantee("T1", "B2")
async def test_a_secret_that_was_moved_to_another_row_does_not_open_there(stage: "VaultStage") -> None:
    mine = await stage.key("api-key-value-1")
    other = uuid4()
    theirs = await stage.service.add(other, "mail", ApiKey(value="api-key-value-2"), label="theirs")
    await stage.change(
        "update agent.connections t set key_id = s.key_id, wrapped_key = s.wrapped_key, sealed = s.sealed "
        "from agent.connections s where s.id = %(source)s and t.id = %(target)s",
        source=mine.id,
        target=theirs.id,
    )
    vault = await stage.process()
    found = await vault.resolve(organization_id=other, provider="mail", connection_id=None)
    assert found == Unconnected(code=ErrorCode.CONNECTION_EXPIRED)


@pytest.mark.guarantee("B2")
async def test_a_secret_does_not_follow_a_changed_token_endpoint(stage: "VaultStage") -> None:
    made = await stage.client()
    elsewhere = "https://collector.example/token"
    await stage.change("update agent.connections set token_endpoint = %(url)s", url=elsewhere)
    vault = await stage.process()
    found = await vault.resolve(organization_id=stage.organization_id, provider="mail", connection_id=None)
    assert found == Unconnected(code=ErrorCode.CONNECTION_EXPIRED)
    checked = await stage.service.check(stage.organization_id, made.id)
    assert (checked.opens, checked.usable) == (False, False)


async def test_a_check_tells_what_a_call_would_meet_and_asks_nobody(stage: "VaultStage") -> None:
    made = await stage.client()
    vault = await stage.process()
    await (await stage.credential(vault)).present()
    fresh = await stage.service.check(stage.organization_id, made.id)
    await stage.change("update agent.connections set renew_at = clock_timestamp()")
    stale = await stage.service.check(stage.organization_id, made.id)
    assert (fresh.usable, fresh.note) == (True, None)
    assert (stale.usable, stale.note) == (True, "the next call obtains a token")
    await stage.service.revoke(stage.organization_id, made.id)
    assert not (await stage.service.check(stage.organization_id, made.id)).usable
    assert len(stage.tokens.asked) == 1


async def test_without_a_key_nothing_is_written_and_nothing_opens(stage: "VaultStage") -> None:
    made = await stage.key("api-key-value-1")
    before = await stage.row(made.id)
    stage.keys = VaultKeys([])
    with pytest.raises(VaultLocked, match="AGENTIC_VAULT_KEYS"):
        await stage.key(label="second")
    with pytest.raises(VaultLocked):
        await stage.service.reconnect(stage.organization_id, made.id, ApiKey(value="api-key-value-2"))
    with pytest.raises(VaultLocked):
        await stage.service.rotate()
    vault = await stage.process()
    with pytest.raises(VaultLocked):
        await vault.resolve(organization_id=stage.organization_id, provider="mail", connection_id=None)
    assert await stage.row(made.id) == before
    assert len(await stage.service.list(stage.organization_id)) == 1


async def test_a_label_is_taken_once_at_a_provider(stage: "VaultStage") -> None:
    await stage.key()
    with pytest.raises(Conflict):
        await stage.key("api-key-value-2")


async def test_a_rotation_moves_every_organization_and_may_be_repeated(stage: "VaultStage") -> None:
    made = [await stage.key(f"api-key-value-{number}", label=str(number)) for number in range(3)]
    other = uuid4()
    await stage.service.add(other, "mail", ApiKey(value="api-key-value-x"), label="theirs")
    damaged = made[0].id
    await stage.change("update agent.connections set wrapped_key = 'nonsense' where id = %(id)s", id=damaged)

    stage.keys = VaultKeys([KEY_2, bytes([1]) * 32])
    rotated = await stage.service.rotate()
    again = await stage.service.rotate()
    assert (rotated.rewrapped, rotated.unreadable) == (3, (damaged,))
    assert (again.rewrapped, again.unreadable) == (0, (damaged,))

    only = await stage.process(VaultKeys([KEY_2]))
    assert (await (await stage.credential(only, made[1].id)).present()).bare == "api-key-value-1"
    old = await stage.process(VaultKeys([bytes([1]) * 32]))
    with pytest.raises(VaultLocked, match="rotate"):
        await stage.credential(old, made[1].id)


async def test_a_rotation_leaves_a_secret_alone_that_was_replaced_meanwhile(stage: "VaultStage") -> None:
    made = await stage.key("api-key-value-1")
    assert made.sealed is not None
    both = VaultKeys([KEY_2, bytes([1]) * 32])
    rewrapped = both.rewrap(made.sealed, made.binding.bound())
    await stage.service.reconnect(stage.organization_id, made.id, ApiKey(value="api-key-value-2"))
    assert not await stage.store.rewrap(stage.organization_id, made.id, version=made.version, sealed=rewrapped)
    assert (await (await stage.credential(await stage.process())).present()).bare == "api-key-value-2"
