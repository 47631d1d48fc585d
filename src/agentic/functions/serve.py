"""Serves the functions to whoever runs them: the embedded engine, the Inngest dev server, or Inngest itself.

Which one, and with which keys, is said by the SDK's own environment variables (``INNGEST_DEV``, ``INNGEST_BASE_URL``,
``INNGEST_EVENT_KEY``, ``INNGEST_SIGNING_KEY``); nothing here reads or repeats them.
"""

from collections.abc import Callable, Sequence
from typing import Any, Protocol, cast

import inngest
import inngest.fast_api

from agentic.contract.errors import ProgramFault
from agentic.functions.mcp_servers_sweep import mcp_servers_sweep
from agentic.functions.outbox_sweep import outbox_sweep
from agentic.functions.ports import FunctionPorts
from agentic.functions.provider_job_settle import provider_job_settle
from agentic.functions.provider_jobs_sweep import provider_jobs_sweep
from agentic.functions.retention_sweep import retention_sweep
from agentic.functions.run_advance import run_advance
from agentic.functions.runs_sweep import runs_sweep
from agentic.functions.usage_rollup import usage_rollup

APP_ID = "agentic"
SERVE_PATH = "/api/inngest"

Function = inngest.Function[Any]
_Route = Callable[..., Callable[..., Any]]


class WebApp(Protocol):
    """What a FastAPI application offers, as far as it is used; the framework itself belongs to the edge."""

    @property
    def get(self) -> _Route:
        """Adds a handler of GET requests under a path."""
        ...

    @property
    def post(self) -> _Route:
        """Adds a handler of POST requests under a path."""
        ...

    @property
    def put(self) -> _Route:
        """Adds a handler of PUT requests under a path."""
        ...


def function_client(
    app_id: str = APP_ID, *, is_production: bool | None = None, server_url: str | None = None
) -> inngest.Inngest:
    """The SDK's client, which the bus sends with and the functions are made with.

    Args:
        app_id: renaming it makes the server see another application.
        is_production: whether requests are signed; ``None`` leaves it to ``INNGEST_DEV``.
        server_url: the function server for events and registration, as the embedded engine says it; ``None`` leaves it to the environment.
    """
    return inngest.Inngest(
        app_id=app_id, is_production=is_production, api_base_url=server_url, event_api_base_url=server_url
    )


def all_functions(client: inngest.Inngest, ports: FunctionPorts) -> list[Function]:
    """Every durable function of the package and of the app, ready to serve.

    Raises:
        ProgramFault: the app's functions are no list of them, or two have one id, of which the SDK would serve the last alone.
    """
    own: list[Function] = [
        run_advance(client, ports),
        outbox_sweep(client, ports),
        runs_sweep(client, ports),
        usage_rollup(client, ports.summing),
        retention_sweep(client, ports.cleaner),
        provider_job_settle(client, ports.settling),
        provider_jobs_sweep(client, ports.reconciling),
        mcp_servers_sweep(client, ports.probing),
    ]
    of_app: Any = () if ports.of_app is None else ports.of_app(client)
    if not isinstance(of_app, Sequence) or not all(isinstance(function, inngest.Function) for function in of_app):
        raise ProgramFault("what makes the app's functions returns a list of what create_function made")
    return _distinct([*own, *of_app])


def _distinct(functions: list[Function]) -> list[Function]:
    ids = [name for function in functions for name in (function.id, function.on_failure_fn_id) if name is not None]
    taken = sorted({name for name in ids if ids.count(name) > 1})
    if taken:
        raise ProgramFault(
            f"two functions have the id {', '.join(taken)}; give each its own, and none that this package uses"
        )
    return functions


def mount(app: WebApp, client: inngest.Inngest, functions: Sequence[Function]) -> None:
    """Serve the functions under ``/api/inngest``. Requests there carry Inngest's signature, not a person's token.

    Raises:
        ProgramFault: the keys of a production server are missing.
    """
    if client.is_production and client.signing_key is None:
        raise ProgramFault(
            "INNGEST_SIGNING_KEY is not set, so requests of Inngest cannot be told from anybody else's; set it together with "
            "INNGEST_EVENT_KEY, or set INNGEST_DEV=1 for a development server on this machine"
        )
    inngest.fast_api.serve(cast("Any", app), client, list(functions), serve_path=SERVE_PATH)
