"""``agentic dev``: database, engine, API and workers of one app on this machine, for as long as a person develops."""

import asyncio
import contextlib
import functools
import os
import signal
import socket
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from urllib.parse import urlsplit

from agentic.api.app import create_api
from agentic.api.auth import JwtAuthenticator
from agentic.bootstrap import api_ports, open_platform
from agentic.contract.errors import ProgramFault
from agentic.contract.principal import Role
from agentic.functions.bus import InngestBus
from agentic.functions.serve import function_client
from agentic.local.dev.address import DevAddress, announced, left_behind, running
from agentic.local.dev.database import kept
from agentic.local.dev.stand_ins import furnish, stand_ins
from agentic.local.dev.supervisor import Supervisor, WorkerPlan
from agentic.local.engine import FunctionEngine, PortUnavailable
from agentic.local.engine.server import bind, serving
from agentic.local.function_server import DEV, named_server, require_reachable
from agentic.local.home import Home
from agentic.local.loopback import keep_off_proxies
from agentic.local.worker import WorkerSettings
from agentic.local.worker.loading import loaded
from agentic.storage.connection import describe
from agentic.storage.migrations import migrate

HOST = "127.0.0.1"
_ENGINE_GRACE_S = 5.0


@dataclass(frozen=True, kw_only=True, slots=True)
class DevOptions:
    """What a person may choose about it.

    Attributes:
        app: import path of the app.
        port: of the API; 0 takes a free one.
        functions_port: shared by the workers; 0 takes a free one.
        workers: how many to start.
        stand_ins: serve a stand-in of every vendor beside them, and have the app reach those.
    """

    app: str
    port: int
    functions_port: int
    workers: int
    stand_ins: bool = False


async def serve_development(
    options: DevOptions, home: Home, database_url: str, *, say: Callable[[str], None], again: str
) -> int:
    """Serve until a signal; the exit code.

    Args:
        options: what to serve.
        home: the folder of the identity, the local secret and the logs.
        database_url: where the runs are; missing migrations are applied.
        say: told where everything is, and when a worker ends.
        again: the command line as the person types it, for hints.

    Raises:
        ProgramFault: the app, a port or the folder is at fault, or the services of this folder run already.
        WorkerFailed: the workers do not start.
        StorageUnavailable: the database does not answer.
    """
    keep_off_proxies()
    other = await asyncio.to_thread(running, home.folder)
    if other is not None:
        raise ProgramFault(
            f"the services of this folder run already (process {other.pid}, {other.app}); '{again} worker --app {other.app}' adds "
            "a worker to them, and another --folder makes others"
        )
    who = home.identity()
    home.name_mcp_servers()
    async with AsyncExitStack() as open_:
        applied = await migrate(database_url)
        if applied:
            say(f"{len(applied)} migrations applied")
        await open_.enter_async_context(kept(home.embedded(), say=say))
        environment: dict[str, str] = {}
        named, server_url = named_server(), None
        before = left_behind(home.folder, options.app)
        if named is None:
            engine = await _engine(database_url, before)
            open_.push_async_callback(functools.partial(engine.stop, grace_s=_ENGINE_GRACE_S))
            server_url, environment = engine.url, {DEV: engine.url}
        else:
            await asyncio.to_thread(require_reachable, named)
        client = function_client(is_production=False if server_url else None, server_url=server_url)
        listener = _listener(options.port)
        open_.callback(listener.close)
        api_url = f"http://{HOST}:{listener.getsockname()[1]}"
        vendors = None
        if options.stand_ins:  # before the app is imported, which reads where its vendors are
            earlier = {} if before is None else before.stand_ins
            vendors = await open_.enter_async_context(
                stand_ins(api=api_url, vault_key=home.vault_key(), earlier=earlier)
            )
            environment |= vendors.environment
        app = await open_.enter_async_context(loaded(options.app))
        platform = await open_.enter_async_context(open_platform(app, database_url, bus=InngestBus(client)))
        await platform.catalogue.publish(tool.spec for tool in platform.registry)
        await platform.approval_store.put_member(who.organization_id, who.user_id, Role.ADMIN)
        if vendors is not None:
            await furnish(platform, who.organization_id, who.user_id)
        functions_port = options.functions_port or _functions_port(before)
        plan = WorkerPlan(
            app=options.app,
            database_url=database_url,
            settings=WorkerSettings(port=functions_port),
            logs=home.folder / "logs",
            environment=environment,
        )
        await open_.enter_async_context(Supervisor(plan, count=options.workers, say=say))
        # after the workers: the event of a run that is started before the engine knows them would find nobody, and a sweep is a minute away
        api = create_api(api_ports(platform), JwtAuthenticator(home.token_secret()))
        await open_.enter_async_context(serving(api, listener))
        address = DevAddress(
            engine=server_url or (named.url if named else ""),
            functions_port=functions_port,
            app=options.app,
            database=describe(database_url),
            folder=str(home.folder.resolve()),
            pid=os.getpid(),
            stand_ins={} if vendors is None else vendors.announced(),
        )
        if server_url is not None:
            open_.enter_context(announced(home.folder, address))
        say(f"the API is at {api_url}/v1, the function server at {address.engine}, logs in {home.folder / 'logs'}")
        say(f'try: curl -H "Authorization: Bearer $({again} token)" {api_url}/v1/runs')
        for line in () if vendors is None else vendors.lines():
            say(line)
        say(f"{options.workers} at work; '{again} worker --app {options.app}' adds more; Ctrl-C stops everything")
        return await _until_stopped()


def _listener(port: int) -> socket.socket:
    try:
        return bind(HOST, port)
    except PortUnavailable as taken:
        raise ProgramFault(
            f"the API cannot listen on {HOST}:{port} ({taken.reason}); stop the program that holds the port, or name another with --port"
        ) from taken


async def _engine(database_url: str, before: DevAddress | None) -> FunctionEngine:
    """Where the last one was, if that can be had."""
    if before is not None:
        again = FunctionEngine(dsn=database_url, port=urlsplit(before.engine).port or 0)
        with contextlib.suppress(PortUnavailable):
            await again.start()
            return again
    engine = FunctionEngine(dsn=database_url)
    await engine.start()
    return engine


def _functions_port(before: DevAddress | None) -> int:
    """That of the last workers, if no other program has taken it."""
    if before is None:
        return free_port()
    with contextlib.closing(socket.socket(socket.AF_INET, socket.SOCK_STREAM)) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        try:
            probe.bind((HOST, before.functions_port))
        except OSError:
            return free_port()
    return before.functions_port


def free_port() -> int:
    """A port that nobody holds now; whoever takes it meanwhile is named when the workers start."""
    with contextlib.closing(socket.socket(socket.AF_INET, socket.SOCK_STREAM)) as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


async def _until_stopped() -> int:
    stopped = asyncio.get_running_loop().create_future()
    for number in (signal.SIGTERM, signal.SIGINT):

        def stop(number: signal.Signals = number) -> None:
            if not stopped.done():
                stopped.set_result(number)

        asyncio.get_running_loop().add_signal_handler(number, stop)
    by = await stopped
    return 128 + signal.SIGINT if by == signal.SIGINT else 0
