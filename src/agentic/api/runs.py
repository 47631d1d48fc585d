"""Routes of runs: start, list, show, cancel."""

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Depends, Query
from fastapi.responses import JSONResponse
from pydantic import Field

from agentic.api.access import Access
from agentic.api.auth import Caller
from agentic.api.errors import BadRequest
from agentic.api.ports import ApiPorts
from agentic.api.usage_views import run_usage_view
from agentic.api.views import run_list_view, tree_view
from agentic.contract.errors import ProgramFault
from agentic.contract.principal import Principal
from agentic.contract.values import Value
from agentic.runtime.agent.definition import AgentDefinition
from agentic.runtime.agent.runs import MAX_INPUT_BYTES, MAX_KEY_CHARS


class StartRun(Value):
    """What a person asks for. Who asks comes from the token, never from here (T2)."""

    agent: str = Field(min_length=1, max_length=64)
    input: str = Field(min_length=1, max_length=MAX_INPUT_BYTES, pattern=r"\S")
    request_key: str = Field(min_length=1, max_length=MAX_KEY_CHARS, pattern=r"^[^\x00-\x1f\x7f]+$")
    """The caller's own id of this request; sent again, it finds the run that was made the first time."""


def run_routes(ports: ApiPorts, access: Access) -> APIRouter:
    """Build the routes."""
    router = APIRouter(prefix="/v1/runs")

    @router.post("")
    async def start(caller: Annotated[Caller, Depends(access)], body: StartRun) -> JSONResponse:
        principal = Principal(organization_id=caller.organization_id, user_id=caller.user_id)
        started = await ports.runs.start(
            _agent(ports, body.agent), body.input, principal=principal, request_key=body.request_key
        )
        answer = {"run_id": str(started.run_id), "created": started.created}
        return JSONResponse(answer, status_code=201 if started.created else 200)

    @router.get("")
    async def recent(
        caller: Annotated[Caller, Depends(access)], limit: Annotated[int, Query(ge=1, le=200)] = 50
    ) -> JSONResponse:
        return JSONResponse({"runs": run_list_view(await ports.run_store.recent(caller.organization_id, limit=limit))})

    @router.get("/{run_id}")
    async def show(caller: Annotated[Caller, Depends(access)], run_id: UUID) -> JSONResponse:
        tree = await ports.runs.tree(caller.organization_id, run_id)
        return JSONResponse(tree_view(tree))

    @router.get("/{run_id}/audit")
    async def audit(caller: Annotated[Caller, Depends(access)], run_id: UUID) -> JSONResponse:
        found = await ports.audit.verify(caller.organization_id, run_id, user_id=caller.user_id)
        return JSONResponse(found.model_dump(mode="json"))

    @router.get("/{run_id}/usage")
    async def used(
        caller: Annotated[Caller, Depends(access)], run_id: UUID, limit: Annotated[int, Query(ge=1, le=1000)] = 500
    ) -> JSONResponse:
        return JSONResponse(run_usage_view(await ports.usage.of_run(caller.organization_id, run_id, limit=limit)))

    @router.post("/{run_id}/cancel")
    async def cancel(caller: Annotated[Caller, Depends(access)], run_id: UUID) -> JSONResponse:
        asked = await ports.runs.cancel(caller.organization_id, run_id, user_id=caller.user_id)
        tree = await ports.runs.tree(caller.organization_id, run_id)  # tells a missing run from one that is over
        return JSONResponse({"run_id": str(run_id), "cancelling": asked, "state": tree.run["state"]})

    return router


def _agent(ports: ApiPorts, name: str) -> AgentDefinition:
    try:
        return ports.agent(name)
    except ProgramFault as error:
        raise BadRequest(f"agent: {error}") from error
