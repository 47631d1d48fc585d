"""A worker by hand: it joins the function server that the environment names, or the development services of its folder."""

import asyncio
import os
from collections.abc import Callable

from agentic.contract.errors import ProgramFault
from agentic.local.dev.address import running
from agentic.local.function_server import BASE_URL, DEV, named_server
from agentic.local.home import DATABASE_URL, Home
from agentic.local.worker.serve import serve
from agentic.local.worker.settings import WorkerSettings
from agentic.services.connections.envelope import VARIABLE as VAULT_KEYS
from agentic.storage.connection import describe

_SIGNING_KEY = "INNGEST_SIGNING_KEY"


def join_and_serve(path: str, home: Home, *, port: int | None, say: Callable[[str], None], again: str) -> None:
    """Work until SIGTERM or SIGINT.

    Args:
        path: import path of the app.
        home: the folder whose database and development services are joined.
        port: of the functions; ``None`` takes the one that the development services share, else a free one.
        say: told where the functions are, once the function server knows them.
        again: the command line as the person types it, for hints.

    Raises:
        ProgramFault: nobody is there to be joined, or the app is at fault.
        NotRegistered: the function server refuses.
        StorageUnavailable: the database does not answer.
    """
    settings = WorkerSettings.from_environment()
    joined = None
    if named_server() is None and not os.environ.get(_SIGNING_KEY):
        found = running(home.folder)
        if found is None:
            raise ProgramFault(
                f"there is no function server to work for; start '{again} dev --app {path}' in another terminal, or set {DEV}, "
                f"{BASE_URL} or {_SIGNING_KEY} for an Inngest server"
            )
        joined = found.database
        os.environ[DEV] = found.engine
        if found.stand_ins:
            os.environ.update(found.stand_ins)
            os.environ[VAULT_KEYS] = os.environ.get(VAULT_KEYS) or home.vault_key()
        port = found.functions_port if port is None else port
    with home.database() as url:
        if joined is not None and joined != describe(url):
            raise ProgramFault(
                f"the services of this folder work on the database {joined}, and this worker would on {describe(url)}; give it the "
                f"same {DATABASE_URL}"
            )
        os.environ[DATABASE_URL] = url
        home.name_mcp_servers()
        asyncio.run(
            serve(
                path,
                settings.model_copy(update={"port": port or 0}),
                ready=lambda at: say(f"at work, functions at {at}; Ctrl-C stops it in order"),
            )
        )
