"""The knobs of the mail provider: failures of sends and reads, mail from others, a grant that ends; and the events it tells of them."""

import hashlib
import hmac
import json
import logging
import time
from collections.abc import Mapping
from typing import Any, Literal
from uuid import uuid4

import httpx
from pydantic import Field, JsonValue

from agentic.local.providers.knobs import Order
from agentic.local.providers.mail.messages import Message, Outgoing, Participant
from agentic.local.providers.mail.store import MailStore

SIGNATURE = "X-Nylas-Signature"
_log = logging.getLogger(__name__)


class MailFault(Order):
    """How the next send or read is answered: with an error, or cut off in the middle.

    Attributes:
        after_accept: a send has left, and the error hides it.
        remembered: the error is replayed under the request's key for an hour, as Nylas does.
    """

    status: int = Field(default=504, ge=400, le=599)
    type: str = ""
    retry_after: int | None = Field(default=None, ge=0)
    after_accept: bool = False
    remembered: bool = True
    lost: bool = False


class Incoming(Order):
    """Mail from somebody else."""

    sender: str = Field(alias="from")
    subject: str = ""
    body: str = ""
    message_id: str | None = None


class MailOrders(Order):
    """What may be ordered of the mail provider."""

    sends: tuple[MailFault, ...] = ()
    reads: tuple[MailFault, ...] = ()
    receive: tuple[Incoming, ...] = ()
    grant: Literal["valid", "invalid"] | None = None


class MailKnobs:
    """Turns them.

    Args:
        store: the provider's.
        grant_id: the mailbox.
        address: that mailbox's own address.
        secret: signs events.
        events_to: where events go; a deployment that takes none refuses them, which the provider bears.
    """

    def __init__(self, store: MailStore, *, grant_id: str, address: str, secret: str, events_to: str) -> None:
        self._store = store
        self._grant_id = grant_id
        self._address = address
        self._secret = secret
        self._events_to = events_to

    async def turn(self, order: bytes) -> JsonValue:
        """See ``Knobs``."""
        ordered = MailOrders.model_validate_json(order)
        for fault in ordered.sends:
            if fault.lost:
                self._store.lose_next()
            else:
                self._store.fail_next(**fault.model_dump(exclude={"lost"}))
        for fault in ordered.reads:
            if fault.lost:
                self._store.lose_next_read()
            else:
                self._store.fail_next_read(status=fault.status, type=fault.type, retry_after=fault.retry_after)
        taken = [await self._received(each) for each in ordered.receive]
        if ordered.grant is not None:
            self._store.grant_status = ordered.grant
            if ordered.grant == "invalid":
                taken.append(await self._tell("grant.expired", {"grant_id": self._grant_id}))
        return {"sends": len(ordered.sends), "reads": len(ordered.reads), "events_taken": list(taken)}

    def seen(self) -> JsonValue:
        """See ``Knobs``."""
        return {
            "grant": self._store.grant_status,
            "requests": [
                {"method": each.method, "path": each.path, "status": each.status, "replayed": each.replayed}
                for each in self._store.attempts
            ],
            "sent": [_shown(message) for message in self._store.messages],
            "received": [_shown(message) for message in self._store.inbox],
        }

    async def _received(self, mail: Incoming) -> bool:
        content = Outgoing(
            to=(Participant(email=self._address),), subject=mail.subject, body=mail.body, is_plaintext=True
        )
        message = self._store.receive(
            content, sender=Participant(email=mail.sender), grant_id=self._grant_id, id=mail.message_id
        )
        return await self._tell("message.created", message.as_data())

    async def _tell(self, kind: str, about: Mapping[str, Any]) -> bool:
        """Deliver an event; whether it was taken."""
        body = event(kind, grant_id=self._grant_id, about=about, at=int(time.time()))
        try:
            async with httpx.AsyncClient(trust_env=False) as client:
                reply = await client.post(self._events_to, content=body, headers=signed(body, self._secret))
        except httpx.TransportError:
            return False
        if not reply.is_success:
            _log.info("the event %s was answered %s", kind, reply.status_code)
        return reply.is_success


def event(kind: str, *, grant_id: str, about: Mapping[str, Any], at: int) -> bytes:
    """The body of an event, with blanks that no serializer makes again.

    Args:
        about: the object of the event.
        at: Unix seconds.
    """
    data = {"application_id": "local", "grant_id": grant_id, "object": dict(about)}
    told = {"specversion": "1.0", "type": kind, "source": "/local", "id": f"ntf-{uuid4()}", "time": at, "data": data}
    return json.dumps(told, indent=1).encode() + b"\n"


def signed(body: bytes, secret: str) -> dict[str, str]:
    """The headers of an event with this body."""
    digest = hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
    return {SIGNATURE: digest, "Content-Type": "application/json"}


def _shown(message: Message) -> JsonValue:
    return {
        "id": message.id,
        "from": message.sender.email,
        "to": [person.email for person in message.content.to],
        "subject": message.content.subject,
        "body": message.content.body,
    }
