"""One session with one server, owned by one task from its first byte to its last.

The SDK's cancel scopes must be left by the task that entered them, and its time-outs do not cover a write. So nobody else touches it:
callers hand over a request and wait, each with a deadline of its own; any task may call, cancel or close.
"""

import asyncio
import contextvars
import logging
import math
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, suppress
from dataclasses import dataclass, field
from typing import Any, Final, Literal, Protocol

import anyio
from mcp.client.session import ClientSession
from mcp.shared.exceptions import MCPError
from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher
from mcp_types import Implementation

from agentic.contract.errors import AgenticError
from agentic.contract.faults import where
from agentic.services.mcp.failures import TRACE, RemoteFailure, Trace, Trouble, trouble_of
from agentic.services.mcp.greeting import Greeting, greeting_of
from agentic.services.mcp.library_logs import quiet_libraries
from agentic.services.mcp.streams import Heard, Incoming, Outgoing, Reader, Writer

MAX_IN_FLIGHT: Final = 32
SOFT_CLOSE_S: Final = 5.0
HARD_CLOSE_S: Final = 2.0
_MAX_WORDS: Final = 8_000
_NO_MESSAGE: Final = -32700
"""The SDK's code for an answer that it could not parse; its words are then its own. From a server it says as little of a call."""
_CONSENT_NEEDED: Final = -32042
"""By which a server says that a person has to open an address first. One that says it wrongly loses its own answer by it."""
_LAST_ANSWERS_S: Final = 1.0
_log = logging.getLogger(__name__)


class Wire(Reader, Writer, Protocol):
    """A transport that is open."""

    @property
    def fault(self) -> Trouble | None:
        """Why it ended the connection itself, if it did."""
        ...

    def stderr_tail(self) -> str | None:
        """The end of what a child process wrote to stderr, redacted."""
        ...

    def kill(self) -> None:
        """Let go of the other side at once."""
        ...


Dial = Callable[[], AbstractAsyncContextManager[Wire]]
Ending = Trouble | Literal["idle", "closed", "replaced"]
"""Why a session that was open ended."""

_NOT_OPENED: Final = {
    Trouble.CONNECT: "it ended, or could not be reached, before it answered the handshake",
    Trouble.CONNECT_TIMEOUT: "it did not answer the handshake within {:g} seconds",
    Trouble.HANDSHAKE: "its answer to the handshake is none that we can work with",
}


class SessionNotClosed(AgenticError):
    """A session did not end although everything was tried; it stays owned, and closing it may be tried again."""


@dataclass(kw_only=True, slots=True, eq=False)
class _Job:
    method: str
    params: Mapping[str, Any]
    answer: asyncio.Future[dict[str, Any]]
    trace: Trace = field(default_factory=Trace)
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)


class Session:
    """Opened once, used by many, closed by anybody.

    Args:
        dial: opens the transport; entered and left by the owner.
        connect_s: for the start of the process and the handshake together.
        idle_s: after the last request; then the session closes itself.
        on_refused: told the method of each request of the server that is refused, `other` for one the protocol does not know.
    """

    def __init__(
        self,
        dial: Dial,
        *,
        connect_s: float,
        idle_s: float,
        client_version: str = "0",
        on_refused: Callable[[str], None] = lambda method: None,
    ) -> None:
        self._dial = dial
        self._connect_s = connect_s
        self._idle_s = idle_s
        self._version = client_version
        self._jobs: asyncio.Queue[_Job | None] = asyncio.Queue()
        self._live: set[_Job] = set()
        self._room = asyncio.Semaphore(MAX_IN_FLIGHT)
        self._wire: Wire | None = None
        self._owner: asyncio.Task[None] | None = None
        self._opened: asyncio.Future[Greeting] = asyncio.get_running_loop().create_future()
        self._life = anyio.CancelScope()
        self._stopping = False
        self._retiring = False
        self._left = False
        self._why_over: Ending | None = None
        self._used_at = 0.0
        self._answered = False
        self.heard: Final = Heard(on_refused=on_refused)

    async def open(self) -> Greeting:
        """Start the server or reach it, and shake hands.

        A caller that is cancelled leaves the closing to the owner, whose time is bounded.

        Raises:
            RemoteFailure: it came to nothing; nothing is left of it.
        """
        # an empty context: the SDK would send the trace and baggage of whoever happened to open the session
        quiet_libraries()
        self._owner = asyncio.create_task(self._own(), context=contextvars.Context())
        try:
            return await asyncio.shield(self._opened)
        except asyncio.CancelledError:
            self._stop()
            self._life.cancel()
            raise
        except RemoteFailure:
            await asyncio.wait({self._owner})
            raise

    @property
    def ended(self) -> bool:
        """Whether no request can be made any more."""
        return self._stopping or self._retiring or self._owner is None or self._owner.done()

    @property
    def gone(self) -> bool:
        """Whether the owner has left, and with it the process and every descriptor."""
        return self._owner is None or self._owner.done()

    async def request(
        self, method: str, params: Mapping[str, Any], *, timeout_s: float | None = None
    ) -> dict[str, Any]:
        """Send one request and wait for its answer, raw.

        A caller that gives up, by ``timeout_s`` or by being cancelled, is free at once; the server is told by the protocol's note and
        a late answer is dropped. The requests of others go on.

        Raises:
            RemoteFailure: there is no answer, or it is an error.
        """
        if self.ended:
            raise RemoteFailure(Trouble.DISCONNECTED, f"{method}: the session is over")
        job = _Job(method=method, params=params, answer=asyncio.get_running_loop().create_future())
        limit = asyncio.timeout(timeout_s)
        try:
            async with limit, self._room:
                if self.ended:
                    raise RemoteFailure(Trouble.DISCONNECTED, f"{method}: the session is over")
                self._live.add(job)
                self._jobs.put_nowait(job)
                return await job.answer
        except TimeoutError:
            if not limit.expired():
                raise
            raise RemoteFailure(
                Trouble.TIMEOUT, f"{method}: no answer within {timeout_s:g} seconds", sent=job.trace.sent
            ) from None
        finally:
            self._live.discard(job)
            job.trace.abandoned = True
            if not job.answer.cancel() and not job.answer.cancelled():
                job.answer.exception()  # told too late to be heard
            job.scope.cancel()
            self._used_at = asyncio.get_running_loop().time()
            if self._retiring and not self._live:
                self._stop()

    def when_gone(self, told: Callable[[Ending], None]) -> None:
        """Have ``told`` called once, when nothing of the open session is left."""
        if self._owner is not None:
            self._owner.add_done_callback(lambda _: told(self._why_over or self._fault or Trouble.DISCONNECTED))

    def retire(self, why: Ending = "closed") -> None:
        """Take no more requests; the session closes itself after those it has."""
        self._over(why)
        self._retiring = True
        if not self._live:
            self._stop()

    async def close(self, *, soft_s: float = SOFT_CLOSE_S, hard_s: float = HARD_CLOSE_S) -> None:
        """End the session: the owner leaves, or the process group is killed, or the owner is cancelled, in this order.

        Raises:
            SessionNotClosed: none of them ended it.
        """
        self._over("closed")
        self._stop()
        if not self._opened.done():
            self._life.cancel()
        if self._owner is None or await _ends(self._owner, soft_s):
            return
        if self._wire is not None:
            self._wire.kill()
        if await _ends(self._owner, hard_s):
            return
        self._owner.cancel()  # last, because it pierces the shields of the SDK's own cleaning up
        if not await _ends(self._owner, hard_s):
            raise SessionNotClosed("a session with an MCP server does not end; close it again, or restart the worker")

    def _stop(self) -> None:
        self._stopping = True
        self._jobs.put_nowait(None)

    def _over(self, why: Ending) -> None:
        self._why_over = self._why_over or why

    def _server_left(self) -> None:
        self._over(self._fault or Trouble.DISCONNECTED)
        self._left = True
        self._stop()

    async def _own(self) -> None:
        trace = Trace()
        TRACE.set(trace)
        self._life.deadline = anyio.current_time() + self._connect_s
        failure: BaseException | None = None
        try:
            with self._life:
                await self._live_through()
        except (Exception, BaseExceptionGroup) as error:  # noqa: BLE001 - whatever ends a session, its waiters are told
            failure = error
            if self._opened.done():
                _log.warning("a session with an MCP server ended: %s", where(error))
        finally:
            self._stopping = True
            self._tell_opener(self._why(failure, trace))
            self._tell_live()

    async def _live_through(self) -> None:
        async with AsyncExitStack() as stack:
            self._wire = wire = await stack.enter_async_context(self._dial())
            incoming = Incoming(wire, self.heard, ended=self._server_left)
            dispatcher = JSONRPCDispatcher(incoming, Outgoing(wire, self.heard))
            # no callback for sampling, roots or elicitation: then they are not offered, and the SDK refuses who asks anyway
            session = await stack.enter_async_context(
                ClientSession(dispatcher=dispatcher, client_info=Implementation(name="agentic", version=self._version))
            )
            said = await session.initialize()
            if self._stopping:
                return
            # the same scope serves the whole life: one that is closed in between would be closed out of order
            self._life.deadline = math.inf
            if not self._opened.done():
                self._opened.set_result(greeting_of(said))
            async with anyio.create_task_group() as tasks:
                while (job := await self._next()) is not None:
                    tasks.start_soon(self._perform, dispatcher, job)
                if self._left:
                    self._tell_live(unless_sent=True)
                    # answers that came before the end are on their way to their tasks; the others are told by the dispatcher
                    tasks.cancel_scope.deadline = anyio.current_time() + _LAST_ANSWERS_S
                else:
                    self._tell_live()
                    tasks.cancel_scope.cancel()

    async def _next(self) -> _Job | None:
        """The next request; ``None`` when the session is to end: asked to, abandoned by its server, or idle."""
        loop = asyncio.get_running_loop()
        self._used_at = max(self._used_at, loop.time())
        while not self._stopping:
            left_s = self._idle_s if self._live else self._used_at + self._idle_s - loop.time()
            if left_s <= 0 and self._jobs.empty():
                self._over("idle")
                self._stopping = True
                break
            with suppress(TimeoutError):
                async with asyncio.timeout(left_s):
                    return await self._jobs.get()
        return None

    async def _perform(self, dispatcher: JSONRPCDispatcher[Any], job: _Job) -> None:
        TRACE.set(job.trace)
        with job.scope:
            if job.answer.done():
                return
            job.trace.sent = True
            try:
                raw = await dispatcher.send_raw_request(job.method, job.params)
            except MCPError as error:
                _settle(job, self._failure(job, error))
            except RuntimeError:  # the dispatcher is gone
                _settle(job, self._disconnected(job))
            else:
                self._answered = True
                if not job.answer.done():
                    job.answer.set_result(raw)

    def _failure(self, job: _Job, error: MCPError) -> RemoteFailure:
        trouble = trouble_of(job.trace)
        if trouble is None and self._stopping:
            return self._disconnected(job)
        if trouble is None and error.code == _NO_MESSAGE:
            trouble = Trouble.PROTOCOL
        words = error.message[:_MAX_WORDS] if trouble is None else None
        if trouble is None:
            trouble = Trouble.AUTH_UNSUPPORTED if error.code == _CONSENT_NEEDED else Trouble.SERVER_ERROR
        return RemoteFailure(
            trouble,
            f"{job.method}: {trouble}" + (f", status {job.trace.status}" if job.trace.status else ""),
            sent=job.trace.sent,
            status=job.trace.status,
            external_text=words,
            code=error.code if words is not None else None,
            credential=job.trace.credential,
        )

    def _disconnected(self, job: _Job) -> RemoteFailure:
        trouble = self._fault or (Trouble.DISCONNECTED if self._answered else self._declined(Trouble.DISCONNECTED))
        return RemoteFailure(
            trouble, f"{job.method}: the session ended before the answer", sent=job.trace.sent, stderr=self._stderr()
        )

    @property
    def _fault(self) -> Trouble | None:
        return self.heard.fault or (self._wire.fault if self._wire is not None else None)

    def _declined(self, otherwise: Trouble) -> Trouble:
        """Why a server left that has never answered: most likely because it cannot do without what it was refused."""
        return Trouble.DECLINED if self.heard.refused else otherwise

    def _stderr(self) -> str | None:
        return self._wire.stderr_tail() if self._wire is not None else None

    def _why(self, failure: BaseException | None, trace: Trace) -> RemoteFailure:
        """Why a session that was not yet open came to nothing."""
        if isinstance(failure, RemoteFailure):
            return failure
        trouble = self._fault or trouble_of(trace)
        said: MCPError | None = None
        if self._life.cancelled_caught:
            trouble = Trouble.CONNECT_TIMEOUT
        elif trouble is None:
            trouble = self._declined(Trouble.CONNECT if self._left else Trouble.HANDSHAKE)
            said = _error_of(failure) if trouble is Trouble.HANDSHAKE else None
        elif trouble is Trouble.PROTOCOL:
            trouble = Trouble.HANDSHAKE
        return RemoteFailure(
            trouble,
            _NOT_OPENED.get(trouble, f"the session was not opened: {trouble}").format(self._connect_s),
            status=trace.status,
            external_text=said.message[:_MAX_WORDS] if said is not None else None,
            code=said.code if said is not None else None,
            stderr=self._stderr(),
        )

    def _tell_opener(self, why: RemoteFailure) -> None:
        if not self._opened.done():
            self._opened.set_exception(why)
            self._opened.exception()  # whoever opened it may have left

    def _tell_live(self, *, unless_sent: bool = False) -> None:
        for job in self._live:
            if not (unless_sent and job.trace.sent):
                _settle(job, self._disconnected(job))


def _error_of(failure: BaseException | None) -> MCPError | None:
    """The server's answer to the handshake, out of what the SDK wraps around it."""
    if isinstance(failure, BaseExceptionGroup):
        return next((error for each in failure.exceptions if (error := _error_of(each)) is not None), None)
    return failure if isinstance(failure, MCPError) and failure.code != _NO_MESSAGE else None


def _settle(job: _Job, failure: RemoteFailure) -> None:
    if not job.answer.done():
        job.answer.set_exception(failure)


async def _ends(task: asyncio.Task[None], within_s: float) -> bool:
    done, _ = await asyncio.wait({task}, timeout=within_s)
    return bool(done)
