"""The vault: which stored connection a call uses, with its credential decrypted. Implements ``ConnectionPort``."""

import logging
from uuid import UUID

from agentic.contract.clock import Clock
from agentic.contract.results import ErrorCode
from agentic.services.connections.choosing import chosen
from agentic.services.connections.envelope import SecretUnreadable, VaultKeys
from agentic.services.connections.opening import Opened, opened
from agentic.services.connections.ports import ConnectionStore
from agentic.services.connections.renewal import LEASE_S, Renewals
from agentic.services.connections.secrets import ApiKey, OAuthSecret, values
from agentic.services.tools.connections import Account, Presented, Unconnected
from agentic.services.tools.handlers.errors import ConnectionUnusable, DefiniteRefusal, RetryableUpstreamError

_log = logging.getLogger(__name__)


class Vault:
    """The stored connections of every organization.

    Args:
        store: where they are.
        keys: what opens them; without one every use says so.
        clock: the process's clock.
        lease_s: how long one renewal may take before another process tries.
    """

    def __init__(self, *, store: ConnectionStore, keys: VaultKeys, clock: Clock, lease_s: float = LEASE_S) -> None:
        self._store = store
        self._keys = keys
        self._clock = clock
        self._renewals = Renewals(store=store, keys=keys, clock=clock, lease_s=lease_s)

    async def resolve(
        self, *, organization_id: UUID, provider: str, connection_id: UUID | None
    ) -> Account | Unconnected:
        """See the port. Nothing is renewed here: that waits until the call is claimed and its request is about to be made."""
        read_at = self._clock.monotonic()
        found = chosen(
            await self._store.of_provider(organization_id, provider, connection_id), connection_id=connection_id
        )
        if isinstance(found, Unconnected):
            return found
        try:
            first = opened(found, self._keys, read_at=read_at)
        except SecretUnreadable as changed:
            _log.error("connection %s: %s", found.id, changed)
            return Unconnected(code=ErrorCode.CONNECTION_EXPIRED)
        return Account(
            id=found.id,
            provider=provider,
            label=found.label,
            shown=found.account,
            credential=StoredCredential(
                first,
                store=self._store,
                renewals=self._renewals,
                clock=self._clock,
            ),
        )

    async def aclose(self) -> None:
        """Let renewals that are under way come to their end."""
        await self._renewals.aclose()


class StoredCredential:
    """The credential of one connection for one call."""

    __slots__ = ("_clock", "_known", "_opened", "_renewals", "_renewed", "_store")

    def __init__(self, first: Opened, *, store: ConnectionStore, renewals: Renewals, clock: Clock) -> None:
        self._opened = first
        self._known = values(first.secret)
        self._store = store
        self._renewals = renewals
        self._clock = clock
        self._renewed = False

    @property
    def secrets(self) -> tuple[str, ...]:
        """See the port."""
        return self._known

    async def present(self) -> Presented:
        """See the port."""
        secret, binding = self._opened.secret, self._opened.row.binding
        if isinstance(secret, ApiKey):
            if binding.header is not None:
                return Presented(header=binding.header, value=secret.value, bare=secret.value)
            return _bearer(secret.value)
        return _bearer(await self._token(secret))

    async def rejected(self) -> DefiniteRefusal:
        """See the port."""
        row = self._opened.row
        if isinstance(self._opened.secret, OAuthSecret) and not self._renewed:
            await self._store.expire(row.organization_id, row.id, version=row.version)
            return RetryableUpstreamError(
                f"the vendor rejects the token of connection {row.id}; the next call renews it"
            )
        await self._store.reject(row.organization_id, row.id, version=row.version, reason="rejected_by_vendor")
        return ConnectionUnusable(f"the vendor rejects the credential of connection {row.id}; connect it again")

    async def _token(self, secret: OAuthSecret) -> str:
        fresh_until = self._opened.fresh_until
        due = fresh_until is not None and self._clock.monotonic() >= fresh_until
        if secret.access_token is not None and not due:
            return secret.access_token
        row = self._opened.row
        self._opened = await self._renewals.renewed(row.organization_id, row.id)
        self._renewed = True
        self._known = tuple(dict.fromkeys((*self._known, *values(self._opened.secret))))
        token = self._opened.secret.access_token if isinstance(self._opened.secret, OAuthSecret) else None
        if token is None:
            raise ConnectionUnusable(f"connection {row.id} holds no token; connect it again")
        return token


def _bearer(value: str) -> Presented:
    return Presented(header="authorization", value=f"Bearer {value}", bare=value)
