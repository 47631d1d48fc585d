"""The connection to one server: opened when it is first needed, shared by all calls, opened again after it ended.

A transport is a cache. What a run was shown of the server, and whether it gave up on it, stands with the run.
"""

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, assert_never

from agentic.contract.clock import Clock, SystemClock
from agentic.contract.errors import AgenticError, StorageUnavailable
from agentic.services.mcp.authentication import Authenticator, Credentials, NoCredential, authenticator
from agentic.services.mcp.catalog import Catalog
from agentic.services.mcp.config import Authentication, AuthScheme, HttpEndpoint, ServerConfig, StdioLaunch
from agentic.services.mcp.config_check import Permits
from agentic.services.mcp.discovery import discover
from agentic.services.mcp.failures import RemoteFailure, Trouble
from agentic.services.mcp.server_events import Teller
from agentic.services.mcp.slots import Slots
from agentic.services.tools.cancellation import asked_to_stop
from agentic.services.tools.telemetry import count_mcp_connect_failure, count_mcp_refused

if TYPE_CHECKING:
    from agentic.services.mcp.greeting import Greeting
    from agentic.services.mcp.session import Session, Wire

Seen = Callable[[Catalog, bool], Awaitable[None]]
"""Told what a server offers, and whether resources too, whenever that was read; a session counts as open after that."""
_CLOSED: Final = "the server is being closed here"


@dataclass(kw_only=True, slots=True, eq=False)
class Connection:
    """An open session and the credential it was opened with."""

    session: "Session"
    greeting: "Greeting"
    authentication: Authenticator
    catalog: Catalog
    """What the server offers over this session, as it was read last. Calls are held against it, so that none goes to another tool."""

    @property
    def resources(self) -> bool:
        """Whether the server offers resources."""
        return self.greeting.offers("resources")

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
        told: of sessions that open and end.
        admits: asked before each call whether our own side still lets the credential be used; raises ``RemoteFailure`` when not.
        seen: told what the server offers each time it is read, before a call goes out.
        launch_fault: why this deployment cannot start the server; it is not started then.
        tls: trust of a private authority; ``None`` trusts the packaged public ones.
    """

    def __init__(
        self,
        config: ServerConfig,
        *,
        vault: Credentials,
        permits: Permits,
        slots: Slots,
        told: Teller | None = None,
        admits: Callable[[], Awaitable[None]] | None = None,
        seen: Seen | None = None,
        launch_fault: str | None = None,
        clock: Clock | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.config = config
        self._vault = vault
        self._permits = permits
        self.slots = slots
        self.told = told
        self._admits = admits
        self._seen = seen
        self._launch_fault = launch_fault
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
            raise RemoteFailure(Trouble.CONNECT, _CLOSED)
        opening = self._opening
        if opening is None or _over(opening):
            opening = self._opening = asyncio.create_task(self._open())
            opening.add_done_callback(_heard)
        try:
            return await asyncio.shield(opening)
        except asyncio.CancelledError:
            if asked_to_stop() or not opening.cancelled():
                raise
            raise RemoteFailure(Trouble.CONNECT, _CLOSED) from None

    async def admit(self) -> None:
        """Refuse to go on with a credential that was taken back here; what was opened with it closes after the calls it has.

        Raises:
            RemoteFailure: it may not be used any more.
            AgenticError: the vault cannot say.
        """
        if self._admits is None:
            return
        try:
            await self._admits()
        except RemoteFailure as refused:
            for session in self._sessions:
                session.retire(refused.trouble)
            raise

    async def look(self) -> Connection:
        """A connection whose catalog was read for this call, or while it waited for the opening.

        A session that does not show its list any more gives way to a new one, which begins with it.

        Raises:
            RemoteFailure: the server cannot be used, or does not show what it offers.
        """
        before = self._opening
        standing = before is not None and before.done()
        connection = await self.connection()
        if not standing or self._opening is not before:
            return connection
        try:
            async with self.slots.preparing(starts_process=False):
                connection.catalog = await discover(self.config, connection.session, connection.greeting)
        except RemoteFailure as failure:
            self.drop(connection, failure.trouble)
            return await self.connection()
        await self._tell_seen(connection)
        return connection

    def drop(self, connection: Connection, why: Trouble) -> None:
        """Begin no more calls on this connection; those it has end as they end, and then it closes. The next call opens another."""
        connection.session.retire(why)

    def retire(self) -> None:
        """Open nothing any more, because another server has taken the place of this one; calls under way end as they end."""
        self._closed = True
        if self._opening is not None and not self._opening.done():
            self._opening.cancel()
        for session in self._sessions:
            session.retire("replaced")

    @property
    def open(self) -> bool:
        """Whether there is a connection that the next call would use."""
        return not self._closed and self._opening is not None and self._opening.done() and not _over(self._opening)

    @property
    def gone(self) -> bool:
        """Whether it is closed for good and nothing of it is left."""
        return (
            self._closed
            and (self._opening is None or self._opening.done())
            and all(session.gone for session in self._sessions)
        )

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
        """A session in which the server has shown what it offers. One that cannot do that is none."""
        began = self._clock.monotonic()
        auth = _Resolved() if self.config.authentication.scheme is AuthScheme.ENV else self._authenticator()
        try:
            async with self.slots.preparing(starts_process=isinstance(self.config.endpoint, StdioLaunch)):
                connection = await self._shown(auth)
        except RemoteFailure as failure:
            count_mcp_connect_failure(server=self.config.server_id, reason_code=str(failure.trouble))
            if self.told is not None:
                self.told.disconnected(reason_code=failure.trouble)
            raise
        told = self.told
        if told is not None:
            connection.session.when_gone(lambda why: told.disconnected(reason_code=why))
            told.connected(
                transport=self.config.endpoint.type,
                tools=len(connection.catalog.tools),
                duration_ms=round((self._clock.monotonic() - began) * 1000),
            )
        await self._tell_seen(connection)
        return connection

    async def _shown(self, auth: Authenticator) -> Connection:
        session = await self._session(auth)
        # also one that ended by itself is known until nothing of it is left
        self._sessions = {each for each in self._sessions if not each.gone} | {session}
        try:
            greeting = await session.open()
            catalog = await discover(self.config, session, greeting)
        except BaseException:
            session.retire()
            raise
        return Connection(session=session, greeting=greeting, authentication=auth, catalog=catalog)

    async def _session(self, auth: Authenticator) -> "Session":
        if self._launch_fault is not None:
            raise RemoteFailure(Trouble.NOT_STARTED, self._launch_fault)
        await asyncio.to_thread(_load)
        from agentic.services.mcp.session import Session

        return Session(
            lambda: self._dial(auth),
            connect_s=self.config.opens_within_s,
            idle_s=self.config.timeouts.idle_s,
            on_refused=lambda method: count_mcp_refused(server=self.config.server_id, method=method),
        )

    async def _tell_seen(self, connection: Connection) -> None:
        if self._seen is None:
            return
        try:
            await self._seen(connection.catalog, connection.resources)
        except BaseException:
            connection.session.retire()  # who was not told of a change may not call past it
            raise

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
        except RemoteFailure:
            raise
        except AgenticError as error:
            raise RemoteFailure(Trouble.UNAUTHORIZED, "the vault has no credential under the reference") from error
        return {auth.name or "": credential.secret.get_secret_value()}


class _Resolved(NoCredential):
    """A credential that went into the child's environment."""


def _load() -> None:
    """Import what needs the SDK. It takes most of a second, which the event loop has not: it renews the leases of runs."""
    try:
        from agentic.services.mcp import http, session, stdio  # noqa: F401 - for its side effect
    except ModuleNotFoundError as missing:
        raise RemoteFailure(
            Trouble.NOT_STARTED, f"the module {missing.name} is not installed; install the package with its extra mcp"
        ) from missing


def _over(opening: "asyncio.Task[Connection]") -> bool:
    if not opening.done():
        return False
    return opening.cancelled() or opening.exception() is not None or opening.result().session.ended


def _heard(opening: "asyncio.Task[Connection]") -> None:
    if not opening.cancelled():
        opening.exception()  # whoever waited may have left
