"""The embedded function engine: stands in for an Inngest server on one machine, with its state in Postgres.

It speaks the SDK's development protocol, so the same function objects run on it and on a real server. It is off
wherever `INNGEST_DEV` or `INNGEST_BASE_URL` names one; deciding that is the caller's.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import uuid

import httpx

from agentic.contract.clock import Clock, SystemClock
from agentic.local.engine.backoff import Backoff, reconnect_backoff, retry_backoff
from agentic.local.engine.calls import Caller
from agentic.local.engine.declarations import require_loopback
from agentic.local.engine.dispatch import Dispatcher
from agentic.local.engine.errors import AppUnreachable, EngineError, RegisteredElsewhere, RegistrationRefused
from agentic.local.engine.inspection import RunView, open_work, view_runs
from agentic.local.engine.server import bind, build_app, serving
from agentic.local.engine.settle import RetryPolicy
from agentic.local.engine.store import Store

_SYNC_TIMEOUT_S = 30.0


class FunctionEngine:
    """Registers apps, takes events in, calls functions durably (ADR 0016).

    Several engines may share a database; each call is leased by one of them. A call whose engine was killed is made
    again once its lease has run out, so a function may be called twice for one step, as with any such server.

    Args:
        dsn: Postgres, reached directly or through a pooler; the engine keeps its own schema `agentic_engine` there.
        host: the loopback address to listen on.
        port: the port to listen on; 0 takes a free one.
        backoff: seconds before a failed call is made again, by failures so far.
        reconnect: seconds before an app that was not reached is tried again, by tries so far.
        unreachable_s: for how long an app may stay unreached before that costs an attempt, in seconds.
        lease_s: how soon another engine takes over the calls of a dead one, in seconds.
        poll_s: how often it looks for work without being woken, in seconds.
        call_timeout_s: how long a call may take, in seconds.
        max_calls: how many calls it makes at once.
        clock: what time it is; None means the machine's clock.
    """

    def __init__(
        self,
        *,
        dsn: str,
        host: str = "127.0.0.1",
        port: int = 0,
        backoff: Backoff = retry_backoff,
        reconnect: Backoff = reconnect_backoff,
        unreachable_s: float = 600.0,
        lease_s: float = 5.0,
        poll_s: float = 0.5,
        call_timeout_s: float = 7200.0,
        max_calls: int = 64,
        clock: Clock | None = None,
    ) -> None:
        self._host, self._port = host, port
        clock = clock or SystemClock()
        self._store = Store(dsn=dsn, clock=clock)
        self._caller = Caller(clock=clock, call_timeout_s=call_timeout_s)
        self._dispatcher = Dispatcher(
            store=self._store,
            caller=self._caller,
            engine=f"{socket.gethostname()}:{os.getpid()}:{uuid.uuid4()}",
            retries=RetryPolicy(backoff=backoff, reconnect=reconnect, unreachable_s=unreachable_s),
            lease_s=lease_s,
            poll_s=poll_s,
            max_calls=max_calls,
        )
        self._registrations: list[str] = []
        self._open = contextlib.AsyncExitStack()

    async def start(self) -> None:
        """Create the schema where it is missing, listen, and go on with whatever is due.

        Raises:
            PortUnavailable: the port is taken.
            NotLoopback: the host is not this machine.
            DatabaseUnreachable: the database does not answer.
            EngineError: the schema cannot be created.
        """
        require_loopback("The engine's address", f"http://{self._host}")
        async with contextlib.AsyncExitStack() as opening:
            opening.push_async_callback(self._caller.close)
            listener = bind(self._host, self._port)
            opening.callback(listener.close)
            await self._store.open()
            opening.push_async_callback(self._store.close)
            app = build_app(store=self._store, wake=self._dispatcher.wake, registered=self._registrations.append)
            await opening.enter_async_context(serving(app, listener))
            self._port = listener.getsockname()[1]
            self._dispatcher.start()
            self._open = opening.pop_all()

    @property
    def url(self) -> str:
        """Where it listens, such as `http://127.0.0.1:40123`: what `INNGEST_DEV` is set to for apps."""
        return f"http://{self._host}:{self._port}"

    async def sync(self, app_url: str) -> None:
        """Have an app register its functions here.

        Args:
            app_url: the whole address of its serve route, ending in `/api/inngest`.

        Raises:
            AppUnreachable: nothing answers there, or not as an Inngest app does.
            RegisteredElsewhere: the app sends its functions to another server.
            RegistrationRefused: it declares what this engine does not do.
        """
        require_loopback("The app's address", app_url)
        self._registrations.clear()
        try:
            async with httpx.AsyncClient(timeout=_SYNC_TIMEOUT_S, trust_env=False) as http:
                response = await http.put(app_url)
        except httpx.HTTPError as error:
            raise AppUnreachable(app_url=app_url, reason=str(error) or type(error).__name__) from error
        try:
            body = response.json()
        except ValueError as error:
            raise AppUnreachable(app_url=app_url, reason=f"it answered {response.status_code}, not JSON") from error
        # The SDK answers 200 even when the registration was refused; only the body tells.
        if isinstance(body, dict) and body.get("ok") is True:
            if not self._registrations:
                raise RegisteredElsewhere(app_url=app_url, engine_url=self.url)
            return
        said = str(body.get("error") or body.get("message") or "") if isinstance(body, dict) else ""
        if said.startswith("Failed request to") and self.url not in said:
            raise RegisteredElsewhere(app_url=app_url, engine_url=self.url)
        if not said or "x-inngest-sdk" not in response.headers:
            raise AppUnreachable(app_url=app_url, reason=f"it answered {response.status_code} {str(body)[:80]}")
        raise RegistrationRefused(said)

    async def stop(self, *, grace_s: float = 10.0) -> None:
        """Let calls in flight end for up to `grace_s` seconds, then stop; the next engine goes on with what is left."""
        await self._dispatcher.stop(grace_s=grace_s)
        await self._open.aclose()

    def wake(self) -> None:
        """Look for due work now, such as after an injected clock moved."""
        self._dispatcher.wake()

    async def idle(self, timeout_s: float) -> None:
        """Wait until no call is owed or in flight; sleeping and waiting runs do not count.

        Raises:
            EngineError: there is still work after `timeout_s` seconds; the message lists it.
        """
        deadline = asyncio.get_running_loop().time() + timeout_s
        while True:
            async with self._store.looking() as transaction:
                work = await open_work(transaction)
            if not work:
                return
            if asyncio.get_running_loop().time() >= deadline:
                raise EngineError(f"The engine is not idle after {timeout_s:g} s: {'; '.join(work)}.")
            await asyncio.sleep(0.01)

    async def runs(self, function_id: str | None = None) -> list[RunView]:
        """All runs, oldest first; those of one function where its id, such as `shop-advance`, is given."""
        async with self._store.looking() as transaction:
            return await view_runs(transaction, function_id=function_id)
