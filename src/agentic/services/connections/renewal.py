"""Renewing a token: one request at a time for a connection, whichever process makes it, and no database lock held meanwhile.

The lease is in the row and fenced. A process that dies while it renews leaves the lease to run out, and the next one renews. It may take
a refresh token with it that the server has replaced and nobody stored; the server then refuses the old one, and a person connects again.
"""

import asyncio
import logging
from typing import Final, assert_never
from uuid import UUID

from agentic.contract.clock import Clock
from agentic.contract.errors import ProgramFault, StorageUnavailable
from agentic.contract.faults import where
from agentic.contract.results import ErrorCode
from agentic.services.connections.envelope import VaultKeys
from agentic.services.connections.models import ConnectionState, StoredConnection
from agentic.services.connections.oauth import (
    UNSAID_LIFE_S,
    NotNow,
    Refused,
    TokenRequest,
    Tokens,
    read_tokens,
    token_request,
)
from agentic.services.connections.opening import Opened, opened
from agentic.services.connections.ports import ConnectionStore
from agentic.services.connections.secrets import OAuthSecret, encoded
from agentic.services.tools.handlers.errors import ConnectionUnusable, HandlerError, RetryableUpstreamError
from agentic.services.tools.handlers.http import GovernedClient
from agentic.services.tools.handlers.reply import Reply

LEASE_S: Final = 30.0
REQUEST_S: Final = 20.0
"""The request ends well inside the lease, so that what it brought can still be stored under it."""
WAIT_S: Final = 2 * LEASE_S
"""How long a call waits for another one's renewal at most; its own deadline is mostly nearer."""
_FIRST_POLL_S: Final = 0.05
_LONGEST_POLL_S: Final = 0.5
_STORE_ATTEMPTS: Final = 3
_MAX_ANSWER_BYTES: Final = 64 * 1024
_log = logging.getLogger(__name__)


class Renewals:
    """Renews the tokens of connections for the calls of this process."""

    def __init__(self, *, store: ConnectionStore, keys: VaultKeys, clock: Clock, lease_s: float = LEASE_S) -> None:
        self._store = store
        self._keys = keys
        self._clock = clock
        self._lease_s = lease_s
        self._running: dict[UUID, asyncio.Task[Opened | None]] = {}

    async def renewed(self, organization_id: UUID, connection_id: UUID) -> Opened:
        """The connection with a token that is fresh: renewed here, or by whoever holds the lease.

        Raises:
            ConnectionUnusable: the credential was refused, or the connection is no longer connected.
            RetryableUpstreamError: the token endpoint gave no token, or the renewal of another process took too long.
        """
        until = self._clock.monotonic() + WAIT_S
        poll_s = _FIRST_POLL_S
        while True:
            # a task of its own, which a call that runs out of time leaves behind: a token that was obtained must be stored
            task = self._running.get(connection_id) or self._begin(organization_id, connection_id)
            found = await asyncio.shield(task)
            if found is not None:
                return found
            if self._clock.monotonic() >= until:
                raise RetryableUpstreamError("another process has not finished renewing the token; nothing was sent")
            await asyncio.sleep(poll_s)  # the lease is another process's: only its row tells when it is done
            poll_s = min(2 * poll_s, _LONGEST_POLL_S)

    async def aclose(self) -> None:
        """Let renewals that are under way come to their end; each is bounded."""
        while self._running:
            await asyncio.wait(self._running.values())
            await asyncio.sleep(0)  # their callbacks take them out

    def _begin(self, organization_id: UUID, connection_id: UUID) -> "asyncio.Task[Opened | None]":
        task = asyncio.create_task(self._round(organization_id, connection_id), name="token renewal")

        def ended(_: object) -> None:
            del self._running[connection_id]
            error = None if task.cancelled() else task.exception()
            if error is not None and not isinstance(error, HandlerError):
                _log.warning("a connection's token could not be renewed: %s", where(error))

        self._running[connection_id] = task
        task.add_done_callback(ended)
        return task

    async def _round(self, organization_id: UUID, connection_id: UUID) -> Opened | None:
        """Renew if it is ours to; else what the row says, or ``None`` while another process renews."""
        read_at = self._clock.monotonic()
        taken = await self._store.take_refresh(organization_id, connection_id, lease_s=self._lease_s)
        if taken is not None:
            return await self._renew(taken)
        row = await self._store.read(organization_id, connection_id)
        if row is None:
            raise ConnectionUnusable("the connection is gone", code=ErrorCode.CONNECTION_REQUIRED)
        match row.state:
            case ConnectionState.NEEDS_REAUTH:
                raise ConnectionUnusable(f"connection {row.id} must be connected again")
            case ConnectionState.REVOKED:
                raise ConnectionUnusable(f"connection {row.id} was disconnected", code=ErrorCode.CONNECTION_REVOKED)
            case ConnectionState.CONNECTED:
                fresh = row.fresh_for_s is not None and row.fresh_for_s > 0
                return opened(row, self._keys, read_at=read_at) if fresh else None
            case _ as never:
                assert_never(never)

    async def _renew(self, row: StoredConnection) -> Opened | None:
        """Under the lease: ask, and store what comes back."""
        try:
            secret = self._secret(row)
            answer = await self._ask(row, secret)
        except BaseException:
            await self._give_back(row)
            raise
        match answer:
            case Tokens():
                return await self._stored(row, secret, answer)
            case Refused():
                _log.warning("connection %s must be connected again: its server says %s", row.id, answer.error)
                await self._store.refuse_refresh(
                    row.organization_id, row.id, fence=row.refresh_fence, reason=answer.error
                )
                raise ConnectionUnusable(f"connection {row.id} must be connected again: {answer.error}")
            case NotNow():
                await self._give_back(row)
                raise RetryableUpstreamError(
                    f"the token endpoint of connection {row.id} {answer.why}; nothing was sent"
                )
            case _ as never:
                assert_never(never)

    def _secret(self, row: StoredConnection) -> OAuthSecret:
        secret = opened(row, self._keys, read_at=self._clock.monotonic()).secret
        if not isinstance(secret, OAuthSecret):
            raise ProgramFault(f"connection {row.id} holds nothing that could be renewed, yet says when to")
        return secret

    async def _ask(self, row: StoredConnection, secret: OAuthSecret) -> Tokens | Refused | NotNow:
        request = token_request(row.binding, secret, row.scopes)
        try:
            reply = await self._posted(request)
        except HandlerError as error:
            # also where it may have arrived: nothing of the call itself has been sent
            return NotNow(why=f"cannot be asked ({type(error).__name__})")
        return read_tokens(row.binding.kind, reply)

    async def _posted(self, request: TokenRequest) -> Reply:
        async with GovernedClient(
            origin=request.origin,
            headers=request.headers,
            deadline=self._clock.monotonic() + min(REQUEST_S, self._lease_s * 2 / 3),
            max_body_bytes=_MAX_ANSWER_BYTES,
            clock=self._clock,
        ) as client:
            return await client.post_bytes(request.path, request.body)

    async def _stored(self, row: StoredConnection, old: OAuthSecret, tokens: Tokens) -> Opened | None:
        """Keep the new token; ``None`` when the lease was lost, and the row says what counts now."""
        secret = OAuthSecret(
            client_id=old.client_id,
            client_secret=old.client_secret,
            refresh_token=tokens.refresh_token or old.refresh_token,
            access_token=tokens.access_token,
        )
        sealed = self._keys.seal(encoded(secret), row.binding.bound())
        read_at = self._clock.monotonic()
        for left in reversed(range(_STORE_ATTEMPTS)):
            try:
                stored = await self._store.store_tokens(
                    row.organization_id,
                    row.id,
                    fence=row.refresh_fence,
                    sealed=sealed,
                    lifetime_s=UNSAID_LIFE_S if tokens.lifetime_s is None else tokens.lifetime_s,
                    expires=tokens.lifetime_s is not None,
                )
            except StorageUnavailable:
                if not left:
                    raise
                continue
            break
        return None if stored is None else opened(stored, self._keys, read_at=read_at)

    async def _give_back(self, row: StoredConnection) -> None:
        try:
            await self._store.end_refresh(row.organization_id, row.id, fence=row.refresh_fence)
        except StorageUnavailable:
            _log.info("the lease to renew connection %s could not be given back; it runs out", row.id)
