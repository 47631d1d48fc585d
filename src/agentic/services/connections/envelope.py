"""Sealing secrets: each under a data key of its own, the data key under a master key of the deployment, both with AES-256-GCM.

The database holds what is sealed, the environment the master keys; either alone opens nothing. What is sealed is bound to its row, so
that it opens nowhere else. A rotation wraps the data keys again and leaves what they seal as it is.
"""

import base64
import binascii
import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, Never

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from agentic.contract.errors import ProgramFault

VARIABLE: Final = "AGENTIC_VAULT_KEYS"
"""Environment variable of the master keys: 32 bytes each in base64, separated by commas. The first seals, all of them open."""
_KEY_BYTES: Final = 32
_NONCE_BYTES: Final = 12
_DATA: Final = b"agentic.connections.data.1\0"
_WRAP: Final = b"agentic.connections.wrap.1\0"
_HOW: Final = f"set {VARIABLE} to 32 random bytes in base64, such as 'openssl rand -base64 32' prints"


class VaultLocked(ProgramFault):
    """There is no master key, or none that the secret was sealed under."""


class SecretUnreadable(ProgramFault):
    """What is stored is not what was sealed for this connection: it was changed, or it is another row's."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Sealed:
    """A secret as the database holds it."""

    key_id: str
    """Which master key wraps the data key; tells nothing of it."""
    wrapped_key: bytes = field(repr=False)
    body: bytes = field(repr=False)


class VaultKeys:
    """The master keys of a deployment.

    Args:
        keys: 32 bytes each; the first one seals. None at all makes a vault that is locked.
    """

    __slots__ = ("_first", "_keys")

    def __init__(self, keys: Sequence[bytes]) -> None:
        self._keys = {_key_id(key): AESGCM(key) for key in keys}
        self._first = _key_id(keys[0]) if keys else None

    @classmethod
    def parse(cls, text: str) -> "VaultKeys":
        """The keys of ``AGENTIC_VAULT_KEYS``; none when it is empty.

        Raises:
            ProgramFault: a key is not 32 bytes in base64. The message does not quote it.
        """
        parts = [part.strip() for part in text.split(",") if part.strip()]
        return cls([_decoded(part, place) for place, part in enumerate(parts, start=1)])

    @classmethod
    def from_environment(cls) -> "VaultKeys":
        """As ``parse``, of the process's environment."""
        return cls.parse(os.environ.get(VARIABLE, ""))

    @property
    def current(self) -> str:
        """Id of the key that seals.

        Raises:
            VaultLocked: there is no key.
        """
        if self._first is None:
            raise VaultLocked(f"the vault has no key; {_HOW}")
        return self._first

    def seal(self, secret: bytes, bound: bytes) -> Sealed:
        """Seal a secret under a new data key.

        Args:
            secret: what is to be kept.
            bound: what it belongs to; the same bytes open it.

        Raises:
            VaultLocked: there is no key.
        """
        data_key = AESGCM.generate_key(bit_length=256)
        return Sealed(
            key_id=self.current,
            wrapped_key=_encrypt(self._keys[self.current], data_key, _WRAP + bound),
            body=_encrypt(AESGCM(data_key), secret, _DATA + bound),
        )

    def open(self, sealed: Sealed, bound: bytes) -> bytes:
        """The secret.

        Raises:
            VaultLocked: the master key it needs is not there.
            SecretUnreadable: it was changed, or sealed for something else.
        """
        return _decrypt(AESGCM(self._data_key(sealed, bound)), sealed.body, _DATA + bound)

    def rewrap(self, sealed: Sealed, bound: bytes) -> Sealed:
        """The same secret with its data key under the first master key. Raises as ``open`` does."""
        data_key = self._data_key(sealed, bound)
        return Sealed(
            key_id=self.current,
            wrapped_key=_encrypt(self._keys[self.current], data_key, _WRAP + bound),
            body=sealed.body,
        )

    def _data_key(self, sealed: Sealed, bound: bytes) -> bytes:
        _ = self.current  # a vault without any key says so first
        master = self._keys.get(sealed.key_id)
        if master is None:
            raise VaultLocked(
                f"the secret was sealed under the key {sealed.key_id}, which is not in {VARIABLE}; "
                "keep a key there until 'agentic connections rotate' has left it behind"
            )
        return _decrypt(master, sealed.wrapped_key, _WRAP + bound)

    def __repr__(self) -> str:
        return f"<VaultKeys {', '.join(self._keys) or 'none'}>"

    def __reduce__(self) -> Never:
        raise TypeError("the keys of a vault are neither pickled nor copied")


def _key_id(key: bytes) -> str:
    return hashlib.sha256(b"agentic.connections.key\0" + key).hexdigest()[:16]


def _decoded(text: str, place: int) -> bytes:
    try:
        key = base64.b64decode(text.replace("-", "+").replace("_", "/"), validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if len(key) != _KEY_BYTES:
        raise ProgramFault(f"key {place} of {VARIABLE} is not 32 bytes in base64; {_HOW}") from None
    return key


def _encrypt(key: AESGCM, plain: bytes, bound: bytes) -> bytes:
    nonce = os.urandom(_NONCE_BYTES)
    return nonce + key.encrypt(nonce, plain, bound)


def _decrypt(key: AESGCM, sealed: bytes, bound: bytes) -> bytes:
    try:
        return key.decrypt(sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:], bound)
    except (InvalidTag, ValueError):
        raise SecretUnreadable(
            "a connection's secret does not open: its row was changed, or it is another row's; connect the account again"
        ) from None
