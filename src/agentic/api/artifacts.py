"""The route of artifacts: what a call left, as a file to keep and never as a page to show."""

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Depends, Response

from agentic.api.access import Access
from agentic.api.auth import Caller
from agentic.api.ports import ApiPorts


def artifact_routes(ports: ApiPorts, access: Access) -> APIRouter:
    """Build the route."""
    router = APIRouter(prefix="/v1/artifacts")

    @router.get("/{artifact_id}")
    async def fetch(caller: Annotated[Caller, Depends(access)], artifact_id: UUID) -> Response:
        kept = await ports.artifacts.read(caller.organization_id, artifact_id)
        # the bytes may be a stranger's: no browser may guess their type, run them or keep them
        return Response(
            kept.body,
            headers={
                "content-type": kept.artifact.media_type,
                "content-disposition": f'attachment; filename="{kept.artifact.id}"',
                "x-content-type-options": "nosniff",
                "content-security-policy": "sandbox; default-src 'none'",
                "cache-control": "private, no-store",
                "x-agentic-trust": str(kept.artifact.trust),
                "x-agentic-complete": "true" if kept.artifact.complete else "false",
            },
        )

    return router
