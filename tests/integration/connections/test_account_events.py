"""Events of accounts, through the API and a real database: whose connection they change, and how often (T1, T3, W2)."""

import asyncio
import gzip
import hashlib
import hmac
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any
from uuid import UUID, uuid4

import httpx
import pytest

from agentic.api.app import create_api
from agentic.api.auth import JwtAuthenticator
from agentic.bootstrap import api_ports
from agentic.contract.events import EventName
from agentic.services.connections.envelope import VaultKeys
from agentic.services.connections.models import StoredConnection
from agentic.services.connections.nylas import NylasEvents
from agentic.services.connections.secrets import ApiKey
from agentic.services.connections.service import ConnectionService
from agentic.storage.connection_store import PostgresConnectionStore
from agentic.testing import Harness, Say, harness
from core_world import execute, rows

SECRET, EARLIER = "webhook-secret-of-now", "webhook-secret-of-before"
HOOK = "/api/v1/agentic/webhooks/nylas"
GRANT = "11111111-1111-4111-8111-111111111111"
VAULT_KEY = "AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE="
NEW = ApiKey(value="application-key-of-nobody")


@dataclass(kw_only=True)
class Stage:
    h: Harness
    http: httpx.AsyncClient

    @property
    def service(self) -> ConnectionService:
        return ConnectionService(
            store=PostgresConnectionStore(self.h.platform.database), keys=VaultKeys.parse(VAULT_KEY)
        )

    async def mailbox(
        self, *, grant: str = GRANT, label: str = "Ada", of: UUID | None = None, provider: str = "nylas"
    ) -> StoredConnection:
        return await self.service.add(
            of or self.h.organization_id, provider, NEW, label=label, account={"grant_id": grant}
        )

    async def post(self, body: bytes, *, secret: str = SECRET, to: str = HOOK) -> int:
        signature = hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
        return (await self.http.post(to, content=body, headers={"X-Nylas-Signature": signature})).status_code

    async def state(self, connection: StoredConnection) -> tuple[str, str | None]:
        [row] = await rows(
            self.h, "select state, reauth_reason from agent.connections where id = %(id)s", id=connection.id
        )
        return row["state"], row["reauth_reason"]

    async def drops(self) -> dict[str, int]:
        found = await rows(self.h, "select reason, drops from agent.webhook_drops where provider = 'nylas'")
        return {row["reason"]: row["drops"] for row in found}

    def told(self) -> list[dict[str, str]]:
        return [event.data() for event in self.h.bus.events]


@asynccontextmanager
async def stage(database: str) -> AsyncIterator[Stage]:
    async with harness(
        tools=[], script=[Say("Done.")], database_url=database, account_events=[NylasEvents((SECRET, EARLIER))]
    ) as h:
        api = create_api(api_ports(h.platform), JwtAuthenticator("a secret that only tests know, long enough"))
        transport = httpx.ASGITransport(api)
        async with httpx.AsyncClient(transport=transport, base_url="https://api.shop.example") as http:
            yield Stage(h=h, http=http)


def event(kind: str, *, id_: str = "ntf-1", grant: str | None = GRANT, at: int | None = None, **about: Any) -> bytes:
    data = {"application_id": "app-1", "object": about} | ({} if grant is None else {"grant_id": grant})
    moment = int(time.time()) + 60 if at is None else at
    return json.dumps({"specversion": "1.0", "type": kind, "id": id_, "time": moment, "data": data}, indent=1).encode()


async def test_an_expired_grant_asks_a_person_to_connect_again_and_tells_the_product_once(database: str) -> None:
    async with stage(database) as s:
        ours, other = await s.mailbox(), await s.mailbox(grant="another-mailbox", label="Bo")
        expired = event("grant.expired")
        assert [await s.post(expired) for _ in range(2)] == [200, 200]
        assert await s.state(ours) == ("needs_reauth", "consent_ended")
        assert (await s.state(other))[0] == "connected"
        assert [(e.name, e.run_id) for e in s.h.bus.events] == [(EventName.ACCOUNT_EVENT, None)]
        assert s.told() == [
            {
                "organization_id": str(s.h.organization_id),
                "connection_id": str(ours.id),
                "provider": "nylas",
                "type": "grant.expired",
                "delivery_id": "ntf-1",
            }
        ]
        assert await s.drops() == {"duplicate": 1}


async def test_a_message_is_recorded_and_told_by_its_ids_alone(database: str) -> None:
    async with stage(database) as s:
        ours = await s.mailbox()
        packed = gzip.compress(event("message.created.truncated", id="msg-1", subject="a word of a person"))
        assert await s.post(packed, secret=EARLIER) == 200
        [told] = s.told()
        assert (told["type"], told["object_id"], told["truncated"]) == ("message.created", "msg-1", "true")
        [claim] = await rows(s.h, "select * from agent.idempotency_keys")
        assert (claim["scope"], claim["connection_id"], claim["run_id"]) == ("webhook.nylas", ours.id, None)
        kept = str(await rows(s.h, "select o.*, k.* from agent.outbox o, agent.idempotency_keys k"))
        assert "word" not in kept
        assert (await s.state(ours))[0] == "connected"


@pytest.mark.guarantee("T1")
async def test_an_event_is_told_to_those_who_hold_its_account_and_to_nobody_else(database: str) -> None:
    """The signed grant finds the connection: of another grant, of another provider, and revoked ones hear nothing."""
    async with stage(database) as s:
        ours, stranger = await s.mailbox(), uuid4()
        theirs = await s.mailbox(of=stranger, grant="their-mailbox")
        elsewhere = await s.mailbox(of=stranger, provider="courier")
        gone = await s.mailbox(label="gone")
        await s.service.revoke(s.h.organization_id, gone.id)
        assert await s.post(event("grant.expired")) == 200
        assert [told["connection_id"] for told in s.told()] == [str(ours.id)]
        assert {(await s.state(one))[0] for one in (theirs, elsewhere)} == {"connected"}
        assert (await s.state(gone))[0] == "revoked"
        claims = await rows(s.h, "select organization_id from agent.idempotency_keys")
        assert [row["organization_id"] for row in claims] == [s.h.organization_id]


async def test_every_connection_of_an_account_is_told_once_however_often_it_comes_at_once(database: str) -> None:
    async with stage(database) as s:
        made = [await s.mailbox(), await s.mailbox(label="Ada too"), await s.mailbox(of=uuid4())]
        expired = event("grant.expired")
        assert set(await asyncio.gather(*(s.post(expired) for _ in range(12)))) == {200}
        assert {await s.state(one) for one in made} == {("needs_reauth", "consent_ended")}
        assert sorted(told["connection_id"] for told in s.told()) == sorted(str(one.id) for one in made)
        assert await s.drops() == {"duplicate": 11}


async def test_an_expiry_from_before_the_account_was_connected_again_changes_nothing(database: str) -> None:
    async with stage(database) as s:
        ours = await s.mailbox()
        before = int(time.time()) - 3600
        assert await s.post(event("grant.expired", id_="ntf-1")) == 200
        await s.service.reconnect(s.h.organization_id, ours.id, NEW)
        assert await s.post(event("grant.expired", id_="ntf-2", at=before)) == 200
        assert await s.post(event("grant.expired", id_="ntf-1")) == 200
        assert (await s.state(ours))[0] == "connected"
        assert len(s.told()) == 1
        assert await s.drops() == {"late": 1, "duplicate": 1}


async def test_what_is_about_no_connection_or_of_no_use_is_counted_and_taken(database: str) -> None:
    async with stage(database) as s:
        await s.mailbox()
        for body in (event("message.created", grant="nobody's"), event("message.created", grant=None)):
            assert await s.post(body) == 200
        assert await s.post(event("calendar.created")) == 200
        assert await s.post(b"{}") == 400
        assert await s.drops() == {"unknown_account": 2, "not_used": 1, "unreadable": 1}
        assert await rows(s.h, "select from agent.idempotency_keys") == []


@pytest.mark.guarantee("T3")
async def test_a_forged_event_changes_nothing_and_leaves_only_a_count(database: str) -> None:
    async with stage(database) as s:
        ours = await s.mailbox()
        expired = event("grant.expired")
        assert await s.post(expired, secret="somebody-else") == 401
        assert (await s.http.post(HOOK, content=expired)).status_code == 401
        assert await s.post(expired, to="/api/v1/agentic/webhooks/fullenrich") == 404
        assert (await s.state(ours))[0] == "connected"
        assert await s.drops() == {"bad_signature": 2}
        assert s.told() == []


async def test_the_address_is_made_sure_of_by_a_challenge(database: str) -> None:
    async with stage(database) as s:
        asked = await s.http.get(HOOK, params={"challenge": "bc609b38-c81f-47fb"})
        assert (asked.status_code, asked.text) == (200, "bc609b38-c81f-47fb")
        assert asked.headers["content-type"].startswith("text/plain")
        assert (await s.http.get(HOOK)).status_code == 400
        assert (await s.http.get("/api/v1/agentic/webhooks/nobody", params={"challenge": "c"})).status_code == 404


@pytest.mark.guarantee("W1")
async def test_an_event_that_could_not_be_sent_at_once_is_sent_by_the_sweep(database: str) -> None:
    async with stage(database) as s:
        await s.mailbox()
        s.h.bus.broken = True
        assert await s.post(event("message.created", id="msg-1")) == 200
        assert s.told() == []
        s.h.bus.broken = False
        await execute(s.h, "update agent.outbox set next_attempt_at = clock_timestamp()")
        await s.h.platform.outbox.sweep()
        assert [told["object_id"] for told in s.told()] == ["msg-1"]
