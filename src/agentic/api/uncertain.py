"""Routes of uncertain calls: what an operator must settle, with written evidence."""

from typing import Annotated

from fastapi import APIRouter, Depends
from fastapi.responses import JSONResponse
from pydantic import Field

from agentic.api.access import Access
from agentic.api.auth import Caller
from agentic.api.ports import ApiPorts
from agentic.api.views import uncertain_view
from agentic.contract.values import Value
from agentic.services.journal.service import MAX_EVIDENCE_CHARS


class Evidence(Value):
    """What the operator saw; kept in the run's record."""

    evidence: str = Field(min_length=1, max_length=MAX_EVIDENCE_CHARS)


def uncertain_routes(ports: ApiPorts, access: Access) -> APIRouter:
    """Build the routes."""
    router = APIRouter(prefix="/v1/uncertain")

    @router.get("")
    async def listed(caller: Annotated[Caller, Depends(access)]) -> JSONResponse:
        calls = await ports.journal.list_uncertain(caller.organization_id)
        return JSONResponse({"uncertain": [uncertain_view(call) for call in calls]})

    @router.get("/{ref}")
    async def show(caller: Annotated[Caller, Depends(access)], ref: str) -> JSONResponse:
        return JSONResponse(uncertain_view(await ports.journal.show(caller.organization_id, ref)))

    @router.post("/{ref}/confirm")
    async def confirm(caller: Annotated[Caller, Depends(access)], ref: str, body: Evidence) -> JSONResponse:
        return await _settle(caller, ref, happened=True, evidence=body.evidence)

    @router.post("/{ref}/deny")
    async def deny(caller: Annotated[Caller, Depends(access)], ref: str, body: Evidence) -> JSONResponse:
        return await _settle(caller, ref, happened=False, evidence=body.evidence)

    async def _settle(caller: Caller, ref: str, *, happened: bool, evidence: str) -> JSONResponse:
        call = await ports.journal.settle(
            caller.organization_id, ref, happened=happened, user_id=caller.user_id, evidence=evidence
        )
        settled = "confirmed" if happened else "denied"
        return JSONResponse({"ref": call.ref, "tool": call.tool, "settled": settled})

    return router
