"""One request of a call: connect, mark that the effect may leave, send, and say honestly how it ended (J3).

Sent a second time only where that cannot be a second effect: after the server said by the protocol that it does not know our session,
and once a run after a new credential, for calls whose repetition is harmless. Everything else is the table's (ADR 0009, 0034).
"""

import logging
from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol
from uuid import UUID

from agentic.contract.results import ErrorCode
from agentic.services.mcp.failures import RemoteFailure, Trouble
from agentic.services.mcp.servers import Connection, RemoteServer
from agentic.services.tools.context import CallContext
from agentic.services.tools.handlers.errors import DefiniteRefusal, OutcomeUnknown, ToolGone
from agentic.services.tools.models import IdempotencyClass
from agentic.services.tools.outcomes import CODE_OF_CAUSE, AvailabilityCause
from agentic.services.tools.telemetry import count_mcp_request

_log = logging.getLogger(__name__)
_FORGOTTEN: Final = frozenset({Trouble.SESSION_EXPIRED, Trouble.SESSION_SUSPECT})
StillOffered = Callable[[Connection], ToolGone | None]
"""Why the server does not offer the tool over this connection as the run was shown it; ``None`` when it does."""


class RunMarks(Protocol):
    """What a run remembers of a server, beside the transport and beyond its life and this process's."""

    async def unauthorized(self, *, run_id: UUID, server_id: str) -> bool:
        """Whether the run gave up on the server because it does not accept our credential."""
        ...

    async def take_renewal(self, *, run_id: UUID, server_id: str) -> bool:
        """Take the one re-authentication a run has for a server; ``True`` for one caller, once."""
        ...

    async def give_up(self, *, run_id: UUID, server_id: str) -> None:
        """Let no later call of the run dial the server."""
        ...


class Asking:
    """Makes the requests of one tool.

    Args:
        server: where it runs.
        idempotency: the class of the tool as the run was shown it; decides what may be sent again.
        still_offered: asked of every connection before anything is sent over it.
    """

    def __init__(
        self, server: RemoteServer, idempotency: IdempotencyClass, *, marks: RunMarks, still_offered: StillOffered
    ) -> None:
        self._server = server
        self.server_id: Final = server.config.server_id
        self._class = idempotency
        self._marks = marks
        self._still_offered = still_offered

    @property
    def reads(self) -> bool:
        """Whether the tool has no effect."""
        return self._class is IdempotencyClass.READ_ONLY

    @property
    def harmless(self) -> bool:
        """Whether doing it twice is doing it once."""
        return self._class in (IdempotencyClass.READ_ONLY, IdempotencyClass.IDEMPOTENT)

    async def answer(self, ctx: CallContext, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """The raw answer to one request, whatever had to be opened or renewed for it.

        Raises:
            DefiniteRefusal: it surely had no effect, or it is one that has none.
            OutcomeUnknown: the request left and nobody can say what became of it.
        """
        if await self._marks.unauthorized(run_id=ctx.run_id, server_id=self.server_id):
            raise DefiniteRefusal(
                f"{self.server_id}: this run gave up on it", code=CODE_OF_CAUSE[AvailabilityCause.SERVER_UNAUTHORIZED]
            )
        reopened = renewed = False
        while True:
            connection = await self._connected(ctx)
            if gone := self._still_offered(connection):
                raise gone
            await ctx.before_first_byte()
            try:
                return await self._sent(ctx, connection, method, params)
            except RemoteFailure as failure:
                if failure.trouble is Trouble.UNAUTHORIZED and await self._renewed(
                    ctx, connection, failure, again=renewed
                ):
                    renewed = True
                    continue
                if not reopened and self._may_reopen(failure):
                    reopened = True
                    self._server.drop(connection, failure.trouble)
                    continue
                if failure.trouble in _FORGOTTEN:
                    self._server.drop(connection, failure.trouble)
                raise self._ending(failure) from failure

    async def _connected(self, ctx: CallContext) -> Connection:
        try:
            return await connected(self._server, run_id=ctx.run_id, marks=self._marks)
        except RemoteFailure as failure:
            raise DefiniteRefusal(
                f"{self.server_id}: {failure.trouble}", code=CODE_OF_CAUSE[failure.cause]
            ) from failure

    async def _sent(
        self, ctx: CallContext, connection: Connection, method: str, params: Mapping[str, Any]
    ) -> dict[str, Any]:
        outcome = "cancelled"
        try:
            # no time-out of its own: the invoker's ends it, and only the invoker can say so
            raw = await connection.session.request(method, params)
            outcome = "ok"
            return raw
        except RemoteFailure as failure:
            outcome = str(failure.trouble)
            raise
        finally:
            ctx.secrets = tuple(dict.fromkeys((*ctx.secrets, *connection.secrets)))
            count_mcp_request(server=self.server_id, method=method, outcome=outcome)

    async def _renewed(self, ctx: CallContext, connection: Connection, failure: RemoteFailure, *, again: bool) -> bool:
        """Whether the call may be sent again under another credential: once a run, for a call that is harmless to repeat.

        Args:
            again: this call was sent again already; a server that refuses a fresh credential is one the run gives up on.
        """
        if not again:
            try:
                if await connection.authentication.headers() != failure.credential:
                    return self.harmless  # another call of the run has renewed it meanwhile
                if await self._marks.take_renewal(run_id=ctx.run_id, server_id=self.server_id) and await self._another(
                    ctx, connection, failure
                ):
                    return self.harmless  # an effect is not sent again: nobody knows what became of it
            except RemoteFailure as refused:
                _log.warning("%s: the credential could not be renewed: %s", self.server_id, refused)
        await self._marks.give_up(run_id=ctx.run_id, server_id=self.server_id)
        self._server.drop(connection, failure.trouble)
        return False

    async def _another(self, ctx: CallContext, connection: Connection, failure: RemoteFailure) -> bool:
        """Whether the run's one re-authentication gave another value than the one that was refused."""
        renewed = False
        try:
            renewed = await connection.authentication.renew(failure.credential)
        finally:
            if self._server.told is not None:
                self._server.told.reauthenticated(
                    run_id=ctx.run_id,
                    scheme=self._server.config.authentication.scheme,
                    outcome="renewed" if renewed else "refused",
                )
        return renewed

    def _may_reopen(self, failure: RemoteFailure) -> bool:
        if failure.trouble is Trouble.SESSION_SUSPECT:
            return self.harmless
        return failure.trouble is Trouble.SESSION_EXPIRED or (
            failure.trouble is Trouble.DISCONNECTED and not failure.sent
        )

    def _ending(self, failure: RemoteFailure) -> DefiniteRefusal | OutcomeUnknown:
        """How a call ends that got no answer."""
        told = f"{self.server_id}: {failure}"
        if failure.trouble is Trouble.SERVER_ERROR and self.harmless:
            return DefiniteRefusal(told, code=ErrorCode.UPSTREAM_ERROR, external_text=failure.external_text)
        if failure.trouble is Trouble.FORBIDDEN and self.harmless:
            return DefiniteRefusal(told, code=ErrorCode.PERMISSION_REFUSED)
        if failure.trouble is Trouble.TOO_LARGE and self.reads:
            return DefiniteRefusal(told, code=ErrorCode.OUTPUT_TOO_LARGE)
        unauthorized = failure.cause is AvailabilityCause.SERVER_UNAUTHORIZED
        if failure.surely_without_effect or self.reads or (unauthorized and self.harmless):
            return DefiniteRefusal(told, code=CODE_OF_CAUSE[failure.cause])
        return OutcomeUnknown(told, status=failure.status, external_text=failure.external_text)


async def connected(server: RemoteServer, *, run_id: UUID, marks: RunMarks) -> Connection:
    """The connection to a server, for one run. A credential that is refused when it begins is refused: the run does not try it again.

    Raises:
        RemoteFailure: the server cannot be used. Nothing of the caller's was sent.
    """
    try:
        await server.admit()
        return await server.connection()
    except RemoteFailure as failure:
        if failure.cause is AvailabilityCause.SERVER_UNAUTHORIZED:
            await marks.give_up(run_id=run_id, server_id=server.config.server_id)
        raise
