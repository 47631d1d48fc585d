"""The identifiers the protocol wants: ULIDs for events and runs, name-based UUIDs for functions."""

from __future__ import annotations

import hashlib
import secrets
import uuid
from datetime import datetime

from agentic.local.engine.moments import unix_ms

_ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_NAMESPACE = uuid.uuid5(uuid.NAMESPACE_URL, "agentic:function-engine")


def new_ulid(moment: datetime) -> str:
    """A fresh ULID that sorts by `moment`."""
    return _ulid(unix_ms(moment), secrets.token_bytes(10))


def seeded_ulid(seed: str | None, index: int) -> str | None:
    """The id of the `index`-th event of a request, the same each time the SDK sends that request again.

    The SDK's `x-inngest-event-id-seed` header is `milliseconds,entropy` and is kept over its retries, so a request
    whose answer was lost does not start its functions twice. None where there is no usable seed.
    """
    millis, _, entropy = (seed or "").partition(",")
    if not millis.isdecimal() or not entropy:
        return None
    return _ulid(int(millis), hashlib.sha256(f"{entropy}:{index}".encode()).digest()[:10])


def name_uuid(name: str) -> str:
    """The UUID the protocol calls a function or an app by; a pure function of its name."""
    return str(uuid.uuid5(_NAMESPACE, name))


def _ulid(millis: int, entropy: bytes) -> str:
    number = ((millis & (1 << 48) - 1) << 80) | int.from_bytes(entropy)
    return "".join(_ALPHABET[(number >> shift) & 31] for shift in range(125, -1, -5))
