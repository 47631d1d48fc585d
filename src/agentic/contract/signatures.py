"""Who sent a delivery: signatures over the bytes as they came, before anybody parses them (T3).

Each check takes several keys, so that a rotation has no gap, and answers ``False`` for whatever it cannot read.
"""

import base64
import binascii
import hashlib
import hmac
import re
from collections.abc import Mapping, Sequence

from agentic.contract.errors import ProgramFault

_HEX = re.compile(r"[0-9a-f]+")
_SECONDS = re.compile(r"[0-9]{1,12}")
_PREFIX = "whsec_"
_MIN_SECRET_BYTES = 24
_MAX_SIGNATURES = 16
"""More than a rotation needs; each is compared with each key."""


def signed_in_hex(raw_body: bytes, signature: str | None, *, keys: Sequence[str], algorithm: str) -> bool:
    """Whether a header is the HMAC of the body in hexadecimal, under one of the keys.

    Args:
        signature: the header's value, in either case; ``None`` when there is none.
        keys: the text of each key that counts now.
        algorithm: of ``hashlib``, such as ``sha1``.
    """
    given = (signature or "").strip().lower()
    if _HEX.fullmatch(given) is None:
        return False
    return any(hmac.compare_digest(given, hmac.new(key.encode(), raw_body, algorithm).hexdigest()) for key in keys)


class StandardWebhooks:
    """Verifies deliveries signed as Standard Webhooks 1.0.0 says, with symmetric keys; Svix's header names count too.

    Args:
        secrets: ``whsec_`` and base64, the current one and those still valid.
        tolerance_s: how far the timestamp may lie from now, either way, in seconds.

    Raises:
        ProgramFault: there is no secret, or one is not of this form.
    """

    def __init__(self, secrets: Sequence[str], *, tolerance_s: float = 300) -> None:
        if not secrets:
            raise ProgramFault("a webhook needs a secret; without one nothing can be told from anything")
        self._keys = [_key(secret) for secret in secrets]
        self._tolerance_s = tolerance_s

    def verify(self, raw_body: bytes, headers: Mapping[str, str], *, now_s: float) -> bool:
        """Whether one of the signatures is of exactly this id, time and body.

        Args:
            headers: names in lower case.
            now_s: Unix seconds.
        """
        id_, timestamp, signatures = (
            headers.get(f"webhook-{part}") or headers.get(f"svix-{part}") for part in ("id", "timestamp", "signature")
        )
        if not id_ or not timestamp or not signatures or _SECONDS.fullmatch(timestamp) is None:
            return False
        if abs(now_s - int(timestamp)) > self._tolerance_s:
            return False
        signed = b".".join((id_.encode("utf-8", "surrogateescape"), timestamp.encode(), raw_body))
        wanted = [base64.b64encode(hmac.digest(key, signed, hashlib.sha256)) for key in self._keys]
        given = [each.encode("utf-8", "replace") for each in _of_version_one(signatures)]
        return any(hmac.compare_digest(one, other) for one in given for other in wanted)


def _of_version_one(signatures: str) -> list[str]:
    parts = [each.split(",") for each in signatures.split(" ")[:_MAX_SIGNATURES]]
    return [part[1] for part in parts if len(part) == 2 and part[0] == "v1"]


def _key(secret: str) -> bytes:
    try:
        key = base64.b64decode(secret.removeprefix(_PREFIX), validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if len(key) < _MIN_SECRET_BYTES:
        raise ProgramFault(
            f"a webhook secret is '{_PREFIX}' and base64 of at least {_MIN_SECRET_BYTES} bytes; copy it from the provider again"
        )
    return key
