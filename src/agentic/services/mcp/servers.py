"""The connection to one server: opened when it is first needed, shared by all calls, opened again after it ended.

A transport is a cache. What a run was shown of the server, and whether it gave up on it, stands with the run.
"""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, assert_never

from agentic.contract.clock import Clock, SystemClock
from agentic.contract.errors import AgenticError, StorageUnavailable
from agentic.services.mcp.authentication import Authenticator, Credentials, NoCredential, authenticator
from agentic.services.mcp.config import Authentication, AuthScheme, HttpEndpoint, ServerConfig, StdioLaunch
from agentic.services.mcp.config_check import Permits
from agentic.services.mcp.failures import RemoteFailure, Trouble
from agentic.services.mcp.slots import Slots
from agentic.services.tools.cancellation import asked_to_stop
from agentic.services.tools.telemetry import count_mcp_connect_failure

if TYPE_CHECKING:
    from agentic.services.mcp.session import Greeting, Session, Wire


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Connection:
    """An open session and the credential it was opened with."""

    session: "Session"
    greeting: "Greeting"
    authentication: Authenticator

    @property
    def secrets(self) -> tuple[str, ...]:
        """Secret values whose echo in an answer is masked (B2)."""
        return self.authentication.secrets


class RemoteServer:
    """One configured server, for one process and one organization.

    Args:
        config: as it was checked when it was written.
        vault: resolves the credential, anew for each session.
        permits: the deployment's egress allow-list.
        slots: shared by all servers of the process.
        tls: trust of a private authority; ``None`` trusts the packaged public ones.
    """

    def __init__(
        self,
        config: ServerConfig,
        *,
        vault: Credentials,
        permits: Permits,
        slots: Slots,
        clock: Clock | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.config = config
        self._vault = vault
        self._permits = permits
        self.slots = slots
        self._clock = clock or SystemClock()
        self._tls = tls
        self._opening: asyncio.Task[Connection] | None = None
        self._sessions: set[Session] = set()
        self._closed = False

    async def connection(self) -> Connection:
        """The open connection, or a new one. Callers that come together share the opening; one that is cancelled does not end it.

        Raises:
            RemoteFailure: the server cannot be used. Nothing of the caller's was sent.
        """
        if self._closed:
            raise RemoteFailure(Trouble.CONNECT, "the worker is shutting down")
        opening = self._opening
        if opening is None or _over(opening):
            opening = self._opening = asyncio.create_task(self._open())
            opening.add_done_callback(_heard)
        try:
            return await asyncio.shield(opening)
        except asyncio.CancelledError:
            if asked_to_stop() or not opening.cancelled():
                raise
            raise RemoteFailure(Trouble.CONNECT, "the worker is shutting down") from None

    def drop(self, connection: Connection) -> None:
        """Begin no more calls on this connection; those it has end as they end, and then it closes. The next call opens another."""
        connection.session.retire()

    async def aclose(self) -> None:
        """Close everything that is open, for good; an opening that is under way is ended. May be called again after a failure.

        Raises:
            SessionNotClosed: a session did not end.
        """
        self._closed = True
        if self._opening is not None:
            self._opening.cancel()
            await asyncio.wait({self._opening})
        sessions = list(self._sessions)
        ends = await asyncio.gather(*(session.close() for session in sessions), return_exceptions=True)
        self._sessions = {session for session in sessions if not session.gone}
        for end in ends:
            if end is not None:
                raise end

    async def _open(self) -> Connection:
        await asyncio.to_thread(_load)
        from agentic.services.mcp.session import Session

        config = self.config
        auth = _Resolved() if config.authentication.scheme is AuthScheme.ENV else self._authenticator()
        stdio = isinstance(config.endpoint, StdioLaunch)
        async with self.slots.preparing(starts_process=stdio):
            session = Session(
                lambda: self._dial(auth), connect_s=config.timeouts.connect_s, idle_s=config.timeouts.idle_s
            )
            # also one that ended by itself is known until nothing of it is left
            self._sessions = {each for each in self._sessions if not each.gone} | {session}
            try:
                greeting = await session.open()
            except RemoteFailure as failure:
                count_mcp_connect_failure(server=config.server_id, reason_code=str(failure.trouble))
                raise
        return Connection(session=session, greeting=greeting, authentication=auth)

    def _authenticator(self) -> Authenticator:
        return authenticator(self.config.authentication, self._vault, self._clock)

    @asynccontextmanager
    async def _dial(self, auth: Authenticator) -> "AsyncIterator[Wire]":
        match self.config.endpoint:
            case StdioLaunch() as launch:
                from agentic.services.mcp.stdio import stdio_wire

                variable = await self._variable(self.config.authentication)
                if isinstance(auth, _Resolved):
                    auth.secrets = tuple(variable.values())
                async with stdio_wire(launch, variable) as pipe:
                    yield pipe
            case HttpEndpoint(url=url):
                from agentic.services.mcp.http import http_wire

                async with http_wire(
                    url, auth, permits=self._permits, request_s=self.config.timeouts.request_s, tls=self._tls
                ) as wire:
                    yield wire
            case _ as never:
                assert_never(never)

    async def _variable(self, auth: Authentication) -> dict[str, str]:
        """The child's one secret variable."""
        if auth.scheme is not AuthScheme.ENV:
            return {}
        try:
            credential = await self._vault.resolve(auth.credential_ref or "")
        except StorageUnavailable as error:
            raise RemoteFailure(Trouble.CONNECT, "the vault does not answer") from error
        except AgenticError as error:
            raise RemoteFailure(Trouble.UNAUTHORIZED, "the vault has no credential under the reference") from error
        return {auth.name or "": credential.secret.get_secret_value()}


class _Resolved(NoCredential):
    """A credential that went into the child's environment."""


def _load() -> None:
    """Import what needs the SDK. It takes most of a second, which the event loop has not: it renews the leases of runs."""
    from agentic.services.mcp import http, session, stdio  # noqa: F401 - for its side effect


def _over(opening: "asyncio.Task[Connection]") -> bool:
    if not opening.done():
        return False
    return opening.cancelled() or opening.exception() is not None or opening.result().session.ended


def _heard(opening: "asyncio.Task[Connection]") -> None:
    if not opening.cancelled():
        opening.exception()  # whoever waited may have left
