"""Routes of approvals: what waits for a person, and the decision. Authority and time are the service's, in one statement (A3, A4, A5)."""

from typing import Annotated, Literal
from uuid import UUID

from fastapi import APIRouter, Depends, Query
from fastapi.responses import JSONResponse
from pydantic import Field

from agentic.api.access import Access
from agentic.api.auth import Caller
from agentic.api.ports import ApiPorts
from agentic.api.views import approval_view
from agentic.contract.values import Value
from agentic.services.approvals.models import Verdict
from agentic.services.approvals.service import MAX_COMMENT_CHARS

Status = Literal["pending", "approved", "rejected", "expired", "cancelled"]


class Decision(Value):
    """What a person says beside yes or no; it reaches the model as their words."""

    comment: str | None = Field(default=None, max_length=MAX_COMMENT_CHARS)


def approval_routes(ports: ApiPorts, access: Access) -> APIRouter:
    """Build the routes."""
    router = APIRouter(prefix="/v1/approvals")

    @router.get("")
    async def find(
        caller: Annotated[Caller, Depends(access)],
        status: Status | None = None,
        run_id: UUID | None = None,
        limit: Annotated[int, Query(ge=1, le=200)] = 100,
    ) -> JSONResponse:
        found = await ports.approvals.find(caller.organization_id, run_id=run_id, status=status, limit=limit)
        return JSONResponse({"approvals": [approval_view(approval) for approval in found]})

    @router.get("/{approval_id}")
    async def show(caller: Annotated[Caller, Depends(access)], approval_id: UUID) -> JSONResponse:
        return JSONResponse(approval_view(await ports.approvals.show(caller.organization_id, approval_id)))

    @router.post("/{approval_id}/approve")
    async def approve(
        caller: Annotated[Caller, Depends(access)], approval_id: UUID, body: Decision | None = None
    ) -> JSONResponse:
        return await _decide(caller, approval_id, Verdict.APPROVED, body)

    @router.post("/{approval_id}/reject")
    async def reject(
        caller: Annotated[Caller, Depends(access)], approval_id: UUID, body: Decision | None = None
    ) -> JSONResponse:
        return await _decide(caller, approval_id, Verdict.REJECTED, body)

    async def _decide(caller: Caller, approval_id: UUID, verdict: Verdict, body: Decision | None) -> JSONResponse:
        comment = body.comment if body is not None else None
        decided = await ports.approvals.decide(
            caller.organization_id, approval_id, user_id=caller.user_id, verdict=verdict, comment=comment
        )
        return JSONResponse(approval_view(decided))

    return router
