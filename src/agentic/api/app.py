"""Joins the routes, their errors and their limits to one FastAPI application."""

from fastapi import FastAPI

from agentic.api.access import members_only
from agentic.api.addresses import PlainAddresses
from agentic.api.approvals import approval_routes
from agentic.api.artifacts import artifact_routes
from agentic.api.auth import Authenticator
from agentic.api.errors import FaultBarrier, install
from agentic.api.events import StreamLimits, event_routes
from agentic.api.health import health_routes
from agentic.api.limits import BodyLimit
from agentic.api.looks import LookLimits
from agentic.api.mcp_servers import mcp_server_routes
from agentic.api.ports import ApiPorts
from agentic.api.runs import run_routes
from agentic.api.uncertain import uncertain_routes
from agentic.api.webhooks import FailureLimits, webhook_routes


def create_api(
    ports: ApiPorts,
    authenticator: Authenticator,
    *,
    streams: StreamLimits | None = None,
    failures: FailureLimits | None = None,
    looks: LookLimits | None = None,
) -> FastAPI:
    """The application. Every route takes a bearer token and sees one organization (T1), but ``/healthz`` and those of webhooks.

    Args:
        ports: what the routes call.
        authenticator: says who calls.
        streams: bounds of the streams of events in this process.
        failures: how many deliveries of a caller may fail their signature.
        looks: how many MCP servers are verified at once in this process.
    """
    # no pages of documentation: they would load scripts from a content network, and nothing here is open without a token
    app = FastAPI(title="agentic", openapi_url=None, docs_url=None, redoc_url=None)
    install(app)
    access = members_only(ports, authenticator)
    # first, for every router ahead is asked about each delivery, and they come by the hundred a second
    app.include_router(webhook_routes(ports.webhooks, ports.account_events, failures))
    app.include_router(health_routes(ports))
    app.include_router(run_routes(ports, access))
    app.include_router(event_routes(ports, access, streams))
    app.include_router(approval_routes(ports, access))
    app.include_router(uncertain_routes(ports, access))
    app.include_router(artifact_routes(ports, access))
    app.include_router(mcp_server_routes(ports, access, looks))
    app.add_middleware(BodyLimit)
    app.add_middleware(PlainAddresses)
    app.add_middleware(FaultBarrier)  # added last, so outermost
    return app
