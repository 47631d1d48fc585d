"""One call of a remote tool: connect, mark that the effect may leave, send, and say honestly how it ended (J3).

Sent a second time only where that cannot be a second effect: after the server said by the protocol that it does not know our session,
and once a run after a new credential, for calls whose repetition is harmless. Everything else is the table's (ADR 0009, 0034).
"""

import logging
from collections.abc import Mapping
from typing import Any, Final, Protocol
from uuid import UUID

from pydantic import BaseModel

from agentic.contract.errors import ProgramFault
from agentic.contract.results import ErrorCode
from agentic.contract.trust import Trust
from agentic.services.mcp.failures import RemoteFailure, Trouble
from agentic.services.mcp.results import Answered, ToolFailed, Unreadable, read_result
from agentic.services.mcp.servers import Connection, RemoteServer
from agentic.services.tools.context import CallContext
from agentic.services.tools.handlers.errors import DefiniteRefusal, OutcomeUnknown
from agentic.services.tools.models import IdempotencyClass, RemoteBinding, ToolSpec
from agentic.services.tools.outcomes import CODE_OF_CAUSE, AvailabilityCause
from agentic.services.tools.telemetry import count_mcp_request

_log = logging.getLogger(__name__)
_CALL: Final = "tools/call"
_FORGOTTEN: Final = frozenset({Trouble.SESSION_EXPIRED, Trouble.SESSION_SUSPECT})


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


class RemoteToolHandler:
    """The code behind one tool that a server published.

    Args:
        server: where it runs.
        spec: as the run was shown it; the class in it decides what may be sent again.
        output_schema: of its structured answers, as the server declared it.
    """

    def __init__(
        self,
        server: RemoteServer,
        spec: ToolSpec,
        *,
        marks: RunMarks,
        output_schema: Mapping[str, Any] | None = None,
    ) -> None:
        if not isinstance(spec.binding, RemoteBinding):
            raise ProgramFault(f"{spec.name} is not a tool of a remote server")
        self._server = server
        self._server_id = server.config.server_id
        self._remote_name = spec.binding.remote_name
        self._class = spec.idempotency
        self._marks = marks
        self._output_schema = output_schema

    async def execute(self, ctx: CallContext, args: BaseModel) -> Any:
        """Make the call.

        Raises:
            DefiniteRefusal: it surely had no effect, or it is one that has none.
            OutcomeUnknown: the request left and nobody can say what became of it.
        """
        ctx.lower_trust(Trust.EXTERNAL)
        params = {"name": self._remote_name, "arguments": args.model_dump(mode="json", exclude_unset=True)}
        raw = await self._answer(ctx, params)
        result = read_result(raw, keep=ctx.save_artifact, output_schema=self._output_schema)
        match result:
            case Answered(data=data):
                return data
            case ToolFailed(words=words, not_applied=not_applied):
                if not_applied or self._harmless:
                    raise DefiniteRefusal(
                        f"{self._server_id}: the tool failed", code=ErrorCode.UPSTREAM_ERROR, external_text=words
                    )
                raise OutcomeUnknown(f"{self._server_id}: the tool failed without saying that nothing was done")
            case Unreadable(why=why):
                if self._reads:
                    raise DefiniteRefusal(f"{self._server_id}: {why}", code=ErrorCode.INVALID_OUTPUT)
                raise OutcomeUnknown(f"{self._server_id}: answered, and {why}")

    @property
    def _reads(self) -> bool:
        return self._class is IdempotencyClass.READ_ONLY

    @property
    def _harmless(self) -> bool:
        """Whether doing it twice is doing it once."""
        return self._class in (IdempotencyClass.READ_ONLY, IdempotencyClass.IDEMPOTENT)

    async def _answer(self, ctx: CallContext, params: Mapping[str, Any]) -> dict[str, Any]:
        """The raw answer, whatever had to be opened or renewed for it."""
        if await self._marks.unauthorized(run_id=ctx.run_id, server_id=self._server_id):
            raise DefiniteRefusal(
                f"{self._server_id}: this run gave up on it", code=CODE_OF_CAUSE[AvailabilityCause.SERVER_UNAUTHORIZED]
            )
        reopened = renewed = False
        while True:
            connection = await self._connected(ctx)
            await ctx.before_first_byte()
            try:
                return await self._sent(ctx, connection, params)
            except RemoteFailure as failure:
                if failure.trouble is Trouble.UNAUTHORIZED and await self._renewed(
                    ctx, connection, failure, again=renewed
                ):
                    renewed = True
                    continue
                if not reopened and self._may_reopen(failure):
                    reopened = True
                    self._server.drop(connection)
                    continue
                if failure.trouble in _FORGOTTEN:
                    self._server.drop(connection)
                raise self._ending(failure) from failure

    async def _connected(self, ctx: CallContext) -> Connection:
        try:
            return await self._server.connection()
        except RemoteFailure as failure:
            if failure.cause is AvailabilityCause.SERVER_UNAUTHORIZED:
                await self._marks.give_up(run_id=ctx.run_id, server_id=self._server_id)
            raise DefiniteRefusal(
                f"{self._server_id}: {failure.trouble}", code=CODE_OF_CAUSE[failure.cause]
            ) from failure

    async def _sent(self, ctx: CallContext, connection: Connection, params: Mapping[str, Any]) -> dict[str, Any]:
        outcome = "cancelled"
        try:
            # no time-out of its own: the invoker's ends it, and only the invoker can say so
            raw = await connection.session.request(_CALL, params)
            outcome = "ok"
            return raw
        except RemoteFailure as failure:
            outcome = str(failure.trouble)
            raise
        finally:
            ctx.secrets = tuple(dict.fromkeys((*ctx.secrets, *connection.secrets)))
            count_mcp_request(server=self._server_id, method=_CALL, outcome=outcome)

    async def _renewed(self, ctx: CallContext, connection: Connection, failure: RemoteFailure, *, again: bool) -> bool:
        """Whether the call may be sent again under another credential: once a run, for a call that is harmless to repeat.

        Args:
            again: this call was sent again already; a server that refuses a fresh credential is one the run gives up on.
        """
        if not again:
            try:
                if await connection.authentication.headers() != failure.credential:
                    return self._harmless  # another call of the run has renewed it meanwhile
                if await self._marks.take_renewal(
                    run_id=ctx.run_id, server_id=self._server_id
                ) and await connection.authentication.renew(failure.credential):
                    return self._harmless  # an effect is not sent again: nobody knows what became of it
            except RemoteFailure as refused:
                _log.warning("%s: the credential could not be renewed: %s", self._server_id, refused)
        await self._marks.give_up(run_id=ctx.run_id, server_id=self._server_id)
        self._server.drop(connection)
        return False

    def _may_reopen(self, failure: RemoteFailure) -> bool:
        if failure.trouble is Trouble.SESSION_SUSPECT:
            return self._harmless
        return failure.trouble is Trouble.SESSION_EXPIRED or (
            failure.trouble is Trouble.DISCONNECTED and not failure.sent
        )

    def _ending(self, failure: RemoteFailure) -> DefiniteRefusal | OutcomeUnknown:
        """How a call ends that got no answer."""
        told = f"{self._server_id}: {failure}"
        if failure.trouble is Trouble.SERVER_ERROR and self._harmless:
            return DefiniteRefusal(told, code=ErrorCode.UPSTREAM_ERROR, external_text=failure.external_text)
        if failure.trouble is Trouble.FORBIDDEN and self._harmless:
            return DefiniteRefusal(told, code=ErrorCode.PERMISSION_REFUSED)
        if failure.trouble is Trouble.TOO_LARGE and self._reads:
            return DefiniteRefusal(told, code=ErrorCode.OUTPUT_TOO_LARGE)
        unauthorized = failure.cause is AvailabilityCause.SERVER_UNAUTHORIZED
        if failure.surely_without_effect or self._reads or (unauthorized and self._harmless):
            return DefiniteRefusal(told, code=CODE_OF_CAUSE[failure.cause])
        return OutcomeUnknown(told, status=failure.status)
