"""Nylas v3 as a provider of events: a grant that has ended, and what happens to the messages of a mailbox.

The signature is over the bytes as they came, compressed ones too, and has no time: what bounds a replay is the id of the event, which
is claimed once for each connection.
"""

import os
import re
from collections.abc import Mapping, Sequence
from typing import Any, Self

from agentic.contract.deliveries import Unreadable
from agentic.contract.delivery_body import expanded, object_of
from agentic.contract.errors import ProgramFault
from agentic.contract.signatures import signed_in_hex
from agentic.services.connections.account_events import AccountEvent
from agentic.services.tools.handlers.email.nylas import GRANT_FACT, NYLAS

SIGNATURE = "x-nylas-signature"
MAX_BODY_BYTES = 4 * 1024 * 1024
"""Of an expanded body; above 1 MB Nylas leaves the message out."""
_GRANT_EXPIRED = "grant.expired"
_USED = re.compile(r"message\.[a-z_.]{1,60}|thread\.replied|grant\.expired")
_TRUNCATED = ".truncated"
_PRINTABLE = re.compile(r"[!-~]{1,200}")
_MIN_SECRET_CHARS = 8
_FAR_S = 10**11
"""Unix seconds further than any calendar here."""


class NylasEvents:
    """Implements ``AccountEvents`` for connections whose fact ``grant_id`` names the mailbox.

    Args:
        secrets: the text of each ``webhook_secret`` that counts now: the current one, and while it is replaced the earlier one.

    Raises:
        ProgramFault: there is no secret, or one that is too short to be one.
    """

    name = NYLAS

    def __init__(self, secrets: Sequence[str]) -> None:
        if not secrets or min(map(len, secrets)) < _MIN_SECRET_CHARS:
            raise ProgramFault("events of nylas need the webhook_secret that Nylas showed when the webhook was created")
        self._secrets = tuple(secrets)

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> Self:
        """With the secrets that ``NYLAS_WEBHOOK_SECRET`` holds, one or while it is replaced two, between commas.

        Raises:
            ProgramFault: it is not set.
        """
        return cls(
            [secret.strip() for secret in environment.get("NYLAS_WEBHOOK_SECRET", "").split(",") if secret.strip()]
        )

    def challenge(self, query: Mapping[str, str]) -> str | None:
        """The value that Nylas wants back when it is told of the address."""
        asked = query.get("challenge", "")
        return asked if _PRINTABLE.fullmatch(asked) else None

    def verify(self, raw_body: bytes, headers: Mapping[str, str]) -> bool:
        """Whether one of the secrets signed exactly these bytes."""
        return signed_in_hex(raw_body, headers.get(SIGNATURE), keys=self._secrets, algorithm="sha256")

    def read(self, raw_body: bytes) -> AccountEvent | None:
        """See ``AccountEvents``."""
        payload = object_of(expanded(raw_body, max_bytes=MAX_BODY_BYTES))
        kind, delivery_id = payload.get("type"), payload.get("id")
        if not isinstance(kind, str) or not isinstance(delivery_id, str) or not _PRINTABLE.fullmatch(delivery_id):
            raise Unreadable("there is no type or no id of the event")
        whole = kind.removesuffix(_TRUNCATED)
        if not _USED.fullmatch(whole):
            return None
        data = _object(payload.get("data"))
        about, at = _object(data.get("object")), payload.get("time")
        return AccountEvent(
            delivery_id=delivery_id,
            type=whole,
            account=_account(data, about),
            at=at if type(at) is int and 0 <= at < _FAR_S else None,  # a boolean is an int, and no time
            ends_consent=whole == _GRANT_EXPIRED,
            object_id=_printable(about.get("id")),
            truncated=whole != kind,
        )


def _account(data: Mapping[str, Any], about: Mapping[str, Any]) -> Mapping[str, str]:
    """The mailbox: named beside what the event is about, or in it; nothing when it is of the whole application."""
    grant = _printable(data.get(GRANT_FACT)) or _printable(about.get(GRANT_FACT))
    return {} if grant is None else {GRANT_FACT: grant}


def _object(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _printable(value: object) -> str | None:
    return value if isinstance(value, str) and _PRINTABLE.fullmatch(value) else None
