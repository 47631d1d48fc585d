"""One process that serves an app: the API for people, the durable functions for whoever runs them.

Database and function server come from the environment (``DATABASE_URL``, ``INNGEST_*``); without the first, the embedded Postgres
serves. ``SUPABASE_JWT_SECRET`` verifies tokens; without it, the folder's own secret does.
"""

import asyncio
import contextlib
import logging
import os
import signal
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import uvicorn

from agentic.api.app import create_api
from agentic.api.auth import JwtAuthenticator
from agentic.bootstrap import api_ports, function_ports, open_platform
from agentic.cli.output import say
from agentic.contract.errors import ProgramFault
from agentic.functions.bus import InngestBus
from agentic.functions.serve import SERVE_PATH, all_functions, function_client, mount
from agentic.local.function_server import named_server, why_away
from agentic.local.home import Home
from agentic.local.listening import UnsignalledServer, listening_socket
from agentic.local.loopback import keep_off_proxies
from agentic.local.program import command
from agentic.local.worker.loading import loaded
from agentic.local.worker.registering import NotRegistered, register
from agentic.storage.migrations import MigrationState, status
from agentic.storage.supabase_object_store import object_store_of

_log = logging.getLogger(__name__)
TOKEN_SECRET = "SUPABASE_JWT_SECRET"  # noqa: S105 - the name of a variable
SERVE_ORIGIN = "INNGEST_SERVE_ORIGIN"
HOST = "127.0.0.1"
FIRST_AGAIN_S, LAST_AGAIN_S = 1.0, 60.0
"""Before the functions are registered again, doubled each time."""
DRAIN_S = 30
"""How long calls in hand may take to end after SIGTERM."""


def serve_until_stopped(path: str, *, home: Home, port: int) -> int:
    """Serve until a signal; the exit code.

    Args:
        path: import path of the app, ``module:attribute``.
        home: the folder of the embedded database and the local secret.
        port: on the loopback address; 0 takes a free one.

    Raises:
        ProgramFault: the app, the port, the keys or the database's schema are at fault.
        StorageUnavailable: the database does not answer.
    """
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    logging.getLogger("httpx").setLevel(logging.WARNING)  # its lines carry addresses of vendors
    if str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))  # a console script has its own folder there instead
    with _listening(port) as listener, home.database() as url:
        secret = os.environ.get(TOKEN_SECRET) or home.token_secret()
        home.name_mcp_servers()
        return asyncio.run(_serve(path, url, JwtAuthenticator(secret), listener, command(home.folder)))


async def _serve(path: str, url: str, authenticator: JwtAuthenticator, listener: socket.socket, again: str) -> int:
    if any(migration.state is MigrationState.PENDING for migration in await status(url)):
        raise ProgramFault(f"the database lacks migrations of this build; run '{again} db migrate'")
    keep_off_proxies()
    client = function_client()
    async with (
        loaded(path) as app,
        object_store_of() as artifact_bodies,
        open_platform(app, url, bus=InngestBus(client), artifact_bodies=artifact_bodies) as platform,
    ):
        await platform.catalogue.publish(tool.spec for tool in platform.registry)
        api = create_api(api_ports(platform), authenticator)
        mount(api, client, all_functions(client, function_ports(platform)))
        server = UnsignalledServer(
            uvicorn.Config(
                api,
                lifespan="off",
                log_config=None,
                access_log=False,
                server_header=False,
                timeout_graceful_shutdown=DRAIN_S,
            )
        )
        stopped_by: list[signal.Signals] = []

        def stop(number: signal.Signals) -> None:
            stopped_by.append(number)
            platform.leader.draining.ask()
            server.should_exit = True
            server.force_exit = len(stopped_by) > 1  # asked twice: at once

        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, stop, number)
        address = f"http://{HOST}:{listener.getsockname()[1]}"
        say(f"the API is at {address}/v1, the functions at {address}{SERVE_PATH}; Ctrl-C stops both")
        await _warn_of_a_server_away()
        registering = asyncio.create_task(_registered(f"{address}{SERVE_PATH}"), name="registering")
        try:
            await server.serve(sockets=[listener])
        finally:
            registering.cancel()
            await asyncio.gather(registering, return_exceptions=True)
        return 128 + signal.SIGINT if stopped_by[:1] == [signal.SIGINT] else 0


async def _registered(url: str) -> None:
    """Tell the function server where the functions are, as soon as it is there.

    A server elsewhere has to be told an address that it can reach: this one is told by itself only where ``INNGEST_SERVE_ORIGIN`` says it.
    """
    if named_server() is None and not os.environ.get(SERVE_ORIGIN):
        say(f"the function server is to be told where the functions are: set {SERVE_ORIGIN}, or sync the app there")
        return
    wait_s = FIRST_AGAIN_S
    while True:
        try:
            await register(url)
        except NotRegistered as refused:
            _log.info("%s; trying again in %.0f s", refused, wait_s)
            await asyncio.sleep(wait_s)
            wait_s = min(wait_s * 2, LAST_AGAIN_S)
        else:
            say("the function server knows the functions")
            return


async def _warn_of_a_server_away() -> None:
    """Serving goes on: what is to be run waits in the outbox, and the sweeps of a server that came late find it."""
    server = named_server()
    reason = None if server is None else await asyncio.to_thread(why_away, server)
    if server is not None and reason is not None:
        say(
            f"warning: {server.variable} names the function server {server.url}, which does not answer ({reason}); "
            "runs are accepted and wait in the outbox until it is there"
        )


@contextlib.contextmanager
def _listening(port: int) -> Iterator[socket.socket]:
    try:
        listener = listening_socket(HOST, port)
    except OSError as error:
        raise ProgramFault(
            f"port {port} on {HOST} cannot be used ({error.strerror}); stop the program that holds it, "
            "or choose another with --port"
        ) from error
    with listener:
        yield listener
