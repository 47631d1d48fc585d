"""The engine's HTTP side: events in, registrations in, runs cancelled. Loopback only, unsigned, as the SDK's development mode expects.

Pages in a browser can reach loopback too. Requests under a foreign `Host` name or without a JSON content type are
refused, which keeps out DNS rebinding and cross-site forms.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Callable
from typing import Any

import psycopg
import uvicorn
from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse
from psycopg_pool import PoolTimeout
from starlette.middleware.trustedhost import TrustedHostMiddleware

from agentic.local.engine.declarations import read_app
from agentic.local.engine.errors import EngineError, PortUnavailable
from agentic.local.engine.events import BadEvent, read_events, take_in
from agentic.local.engine.refusals import check_function
from agentic.local.engine.register import register
from agentic.local.engine.runs import end_run
from agentic.local.engine.store import Store
from agentic.local.engine.wire_json import loads
from agentic.local.listening import UnsignalledServer, listening_socket

_HOSTS = ["127.0.0.1", "localhost"]


def build_app(*, store: Store, wake: Callable[[], None], registered: Callable[[str], None]) -> FastAPI:
    """The routes.

    Args:
        store: where events and registrations are written.
        wake: called after each, when there may be work.
        registered: called with the address of each app that registered.
    """
    app = FastAPI(openapi_url=None)
    app.add_middleware(TrustedHostMiddleware, allowed_hosts=_HOSTS)

    @app.post("/e/{key}")
    async def send_events(request: Request) -> JSONResponse:
        try:
            body = await _json(request)
            async with store.transaction() as transaction:
                seed = request.headers.get("x-inngest-event-id-seed")
                events = read_events(body, transaction=transaction, seed=seed)
                await take_in(transaction, events)
        except BadEvent as wrong:
            return JSONResponse({"ids": [], "status": 400, "error": str(wrong)}, status_code=400)
        wake()
        return JSONResponse({"ids": [event["id"] for event in events], "status": 200})

    @app.post("/fn/register")
    async def register_app(request: Request) -> JSONResponse:
        try:
            declared = read_app(await _json(request))
            for function in declared.functions:
                check_function(declared.configs[function.id], function)
            async with store.transaction() as transaction:
                modified = await register(transaction, declared)
        except (BadEvent, EngineError) as refused:
            return JSONResponse({"ok": False, "error": str(refused)}, status_code=400)
        registered(declared.url)
        wake()
        return JSONResponse({"ok": True, "modified": modified})

    @app.delete("/v1/runs/{run_id}")
    async def cancel_run(run_id: str) -> JSONResponse:
        # The path of the real server, which too lets a run that has ended be cancelled without effect.
        async with store.transaction() as transaction:
            if await transaction.one("is_run", id=run_id) is None:
                return JSONResponse({"error": f"there is no run {run_id}", "status": 404}, status_code=404)
            error = {"name": "FunctionCancelled", "message": "cancelled by request"}
            await end_run(transaction, run_id, status="cancelled", result=error)
        wake()
        return JSONResponse({})

    @app.exception_handler(psycopg.OperationalError)
    @app.exception_handler(psycopg.InterfaceError)
    @app.exception_handler(PoolTimeout)
    async def database_away(_: Request, error: Exception) -> JSONResponse:
        # 5xx, so that the SDK sends its events again.
        answer = {"ids": [], "status": 503, "error": f"the engine's database does not answer: {error}"}
        return JSONResponse(answer, status_code=503)

    @app.exception_handler(psycopg.DataError)
    async def unstorable(_: Request, error: Exception) -> JSONResponse:
        # Names and ids are text in the database, which takes no zero byte.
        answer = {"ids": [], "ok": False, "status": 400, "error": f"the engine's database cannot store it: {error}"}
        return JSONResponse(answer, status_code=400)

    @app.get("/health")
    async def health() -> dict[str, str]:
        return {"engine": "agentic", "status": "ok"}

    return app


async def _json(request: Request) -> Any:
    if request.headers.get("content-type", "").partition(";")[0].strip() != "application/json":
        raise BadEvent("the request is not application/json")
    try:
        return loads(await request.body())
    except ValueError as wrong:
        raise BadEvent(f"the request is not JSON ({wrong})") from wrong


def bind(host: str, port: int) -> socket.socket:
    """A socket to listen on.

    Raises:
        PortUnavailable: it cannot be bound.
    """
    try:
        return listening_socket(host, port)
    except OSError as error:
        raise PortUnavailable(host=host, port=port, reason=error.strerror or str(error)) from error


@contextlib.asynccontextmanager
async def serving(app: Any, listener: socket.socket) -> AsyncIterator[None]:
    """Serve an ASGI app on a bound socket while the block runs."""
    config = uvicorn.Config(app, lifespan="off", log_config=None, access_log=False, timeout_graceful_shutdown=2)
    server = UnsignalledServer(config)
    task = asyncio.create_task(server.serve(sockets=[listener]), name="engine-http")
    try:
        while not server.started and not task.done():  # noqa: ASYNC110 - uvicorn has no event for it
            await asyncio.sleep(0.002)
        yield
    finally:
        server.should_exit = True
        await task
        listener.close()
