"""``GET /healthz``: whether this process reaches its database. Open to everybody, says nothing else."""

import asyncio
import logging

from fastapi import APIRouter
from fastapi.responses import JSONResponse

from agentic.api.errors import error_response
from agentic.api.ports import ApiPorts

_log = logging.getLogger(__name__)
HEALTH_TIMEOUT_S = 3.0
"""Shorter than what load balancers wait."""


def health_routes(ports: ApiPorts) -> APIRouter:
    """Build the route."""
    router = APIRouter()

    @router.get("/healthz")
    async def healthz() -> JSONResponse:
        try:
            async with asyncio.timeout(HEALTH_TIMEOUT_S):
                await ports.health()
        except Exception as error:  # noqa: BLE001 - whatever it is, this process is not healthy
            _log.warning("the health check failed (%s)", type(error).__name__)
            return error_response(503, "database_unreachable", "the database does not answer")
        return JSONResponse({"status": "ok"})

    return router
