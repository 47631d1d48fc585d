"""A stored credential is handed over as it is now, to its own organization, and never shown."""

import copy
from uuid import uuid4

import pytest

from agentic.contract.errors import NotFound
from agentic.services.connections.credential_reader import CredentialReader, CredentialUnusable
from agentic.services.connections.envelope import SecretUnreadable, VaultKeys, VaultLocked
from agentic.services.connections.secrets import ApiKey
from tests.integration.connections.conftest import CLIENT_SECRET, SECOND, VaultStage


def reader(stage: VaultStage, keys: VaultKeys | None = None) -> CredentialReader:
    return CredentialReader(store=stage.store, keys=keys or stage.keys)


async def test_a_key_and_a_client_are_read_as_they_are_now(stage: VaultStage) -> None:
    key, client = await stage.key("api-key-value-1"), await stage.client()
    read = reader(stage).read
    found = await read(stage.organization_id, key.id)
    assert (found.value, found.client_id) == ("api-key-value-1", None)
    await stage.service.reconnect(stage.organization_id, key.id, ApiKey(value="api-key-value-2"))
    assert (await read(stage.organization_id, key.id)).value == "api-key-value-2"
    found = await read(stage.organization_id, client.id)
    assert (found.value, found.client_id) == (CLIENT_SECRET, "ada")


@pytest.mark.guarantee("T1")
async def test_the_connection_of_another_organization_is_as_good_as_none(stage: VaultStage) -> None:
    key = await stage.key()
    messages = []
    for organization_id, connection_id in ((uuid4(), key.id), (stage.organization_id, uuid4())):
        with pytest.raises(NotFound) as missing:
            await reader(stage).read(organization_id, connection_id)
        messages.append(str(missing.value).replace(str(connection_id), "ID"))
    assert messages == ["connection ID does not exist in this organization"] * 2


async def test_what_may_not_be_used_is_not_handed_over(stage: VaultStage) -> None:
    key, consent, tired = await stage.key(), await stage.consent(), await stage.key(label="Tired")
    await stage.service.revoke(stage.organization_id, key.id)
    await stage.store.reject(stage.organization_id, tired.id, version=1, reason="rejected_by_vendor")
    for connection, why in ((key, "is revoked"), (consent, "a person's consent"), (tired, "connect it again")):
        with pytest.raises(CredentialUnusable, match=why):
            await reader(stage).read(stage.organization_id, connection.id)


@pytest.mark.guarantee("B2")
async def test_a_secret_that_does_not_open_is_said_and_none_is_ever_shown(stage: VaultStage) -> None:
    key, other = await stage.key("api-key-value-1"), await stage.key(label="Other")
    with pytest.raises(VaultLocked):
        await reader(stage, VaultKeys.parse(SECOND)).read(stage.organization_id, key.id)
    found = await reader(stage).read(stage.organization_id, key.id)
    assert "api-key-value-1" not in repr(found) + str(found)
    with pytest.raises(TypeError, match="neither pickled nor copied"):
        copy.copy(found)
    await stage.change(
        "update agent.connections c set sealed = o.sealed, wrapped_key = o.wrapped_key from agent.connections o "
        "where c.id = %(id)s and o.id = %(other)s",
        id=key.id,
        other=other.id,
    )
    with pytest.raises(SecretUnreadable):
        await reader(stage).read(stage.organization_id, key.id)
