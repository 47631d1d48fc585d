"""A worker's life: open the app, serve the functions, register, lead runs, and on SIGTERM finish the call in hand and go."""

import asyncio
import os
import signal
import socket
from collections.abc import Callable

import uvicorn
from fastapi import FastAPI

from agentic.bootstrap import function_ports, open_platform
from agentic.contract.errors import ProgramFault
from agentic.functions.bus import InngestBus
from agentic.functions.serve import SERVE_PATH, all_functions, function_client, mount
from agentic.local.home import DATABASE_URL
from agentic.local.listening import UnsignalledServer, listening_socket
from agentic.local.loopback import keep_off_proxies
from agentic.local.worker.loading import loaded
from agentic.local.worker.registering import register
from agentic.local.worker.settings import WorkerSettings
from agentic.services.tools.default_invoker import InvokerSettings
from agentic.storage.database import Database
from agentic.storage.pool import Pool
from agentic.storage.supabase_object_store import object_store_of

StoresOn = Callable[[Pool], Database]


async def serve(
    path: str, settings: WorkerSettings, *, ready: Callable[[str], None], stores_on: StoresOn | None = None
) -> None:
    """Work until SIGTERM or SIGINT.

    Args:
        path: import path of the app.
        settings: how to run it.
        ready: told the address of the functions once the function server knows them.
        stores_on: what the stores reach the database through; ``None`` for the real thing.

    Raises:
        ProgramFault: the app, the database URL, the port or the settings are at fault.
        StorageUnavailable: the database does not answer.
        NotRegistered: the function server does not answer, or refuses the functions.
    """
    database_url = os.environ.get(DATABASE_URL)
    if not database_url:
        raise ProgramFault(f"{DATABASE_URL} is not set; a worker needs the database its runs are in")
    keep_off_proxies()
    client = function_client(settings.app_id)
    async with (
        loaded(path) as app,
        object_store_of() as artifact_bodies,
        open_platform(
            app,
            database_url,
            bus=InngestBus(client),
            timings=settings.timings,
            invoker_settings=InvokerSettings(
                claim_grace_s=settings.claim_grace_s, max_output_bytes=settings.max_output_bytes
            ),
            artifact_bodies=artifact_bodies,
            stores_on=stores_on or Database,
        ) as platform,
    ):
        web = FastAPI(openapi_url=None)
        mount(web, client, all_functions(client, function_ports(platform)))
        server = _server(web, settings)
        listener = _listener(settings.port)

        def stop() -> None:
            platform.leader.draining.ask()
            server.should_exit = True

        _on_signals(stop)
        serving = asyncio.create_task(server.serve(sockets=[listener]), name="functions")
        try:
            url = f"http://127.0.0.1:{listener.getsockname()[1]}{SERVE_PATH}"
            await register(url)
            ready(url)
            await serving
        finally:
            server.should_exit = True
            await serving


def _server(web: FastAPI, settings: WorkerSettings) -> uvicorn.Server:
    drain_s = max(1, round(settings.drain_s))
    return UnsignalledServer(
        uvicorn.Config(web, lifespan="off", log_config=None, access_log=False, timeout_graceful_shutdown=drain_s)
    )


def _listener(port: int) -> socket.socket:
    try:
        return listening_socket("127.0.0.1", port, shared=port != 0)
    except OSError as error:
        raise ProgramFault(
            f"port {port} on 127.0.0.1 cannot be used ({error.strerror}); a program that is no worker holds it. Name another port"
        ) from error


def _on_signals(stop: Callable[[], None]) -> None:
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop)
