"""Routes of runs: start, list, show, cancel."""

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Depends, Query
from fastapi.responses import JSONResponse
from pydantic import AwareDatetime, Field

from agentic.api.access import Access
from agentic.api.auth import Caller
from agentic.api.errors import BadRequest
from agentic.api.pages import cursor_of, place_of
from agentic.api.ports import ApiPorts
from agentic.api.usage_views import run_usage_view
from agentic.api.views import run_list_view, tree_view
from agentic.contract.errors import ProgramFault
from agentic.contract.lanes import Lane
from agentic.contract.principal import Principal, RunCeilings
from agentic.contract.values import Value
from agentic.runtime.agent.definition import AgentDefinition
from agentic.runtime.agent.runs import MAX_INPUT_BYTES, MAX_KEY_CHARS, MAX_REASON_CHARS, MAX_SESSION_CHARS
from agentic.runtime.agent.starting import MAX_DEADLINE_S
from agentic.services.runs.models import Place, RunQuery, RunState

_PRINTABLE = r"^[^\x00-\x1f\x7f]+$"


class StartRun(Value):
    """What a person asks for. Who asks comes from the token, never from here (T2)."""

    agent: str = Field(min_length=1, max_length=64)
    input: str = Field(min_length=1, max_length=MAX_INPUT_BYTES, pattern=r"\S")
    request_key: str = Field(min_length=1, max_length=MAX_KEY_CHARS, pattern=_PRINTABLE)
    """The caller's own id of this request; sent again, it finds the run that was made the first time."""
    session: str | None = Field(default=None, min_length=1, max_length=MAX_SESSION_CHARS, pattern=_PRINTABLE)
    """The caller's own id of a conversation of theirs; the run begins with what its ended runs said."""
    lane: Lane = Lane.INTERACTIVE
    ceilings: RunCeilings | None = None
    """Lower the agent's own, in what they name."""
    deadline_s: float | None = Field(default=None, gt=0, le=MAX_DEADLINE_S)


class CancelRun(Value):
    """Why a run is asked to stop."""

    reason: str | None = Field(default=None, max_length=MAX_REASON_CHARS)


def run_routes(ports: ApiPorts, access: Access) -> APIRouter:
    """Build the routes."""
    router = APIRouter(prefix="/v1/runs")

    @router.post("")
    async def start(caller: Annotated[Caller, Depends(access)], body: StartRun) -> JSONResponse:
        principal = Principal(organization_id=caller.organization_id, user_id=caller.user_id)
        started = await ports.runs.start(
            _agent(ports, body.agent),
            body.input,
            principal=principal,
            request_key=body.request_key,
            session=body.session,
            lane=body.lane,
            ceilings=body.ceilings,
            deadline_s=body.deadline_s,
        )
        answer = {"run_id": str(started.run_id), "created": started.created}
        return JSONResponse(answer, status_code=201 if started.created else 200)

    @router.get("")
    async def listed(
        caller: Annotated[Caller, Depends(access)],
        state: Annotated[list[RunState] | None, Query()] = None,
        agent: str | None = None,
        session: str | None = None,
        lane: Lane | None = None,
        root: UUID | None = None,
        created_after: AwareDatetime | None = None,
        created_before: AwareDatetime | None = None,
        cursor: str | None = None,
        limit: Annotated[int, Query(ge=1, le=200)] = 50,
    ) -> JSONResponse:
        query = RunQuery(
            states=state,
            agent=agent,
            session_id=session,
            lane=lane,
            root_run_id=root,
            created_after=created_after,
            created_before=created_before,
        )
        page = await ports.runs.page(caller.organization_id, query, limit=limit, behind=_place(cursor))
        more = {} if page.behind is None else {"next": cursor_of(page.behind)}
        return JSONResponse({"runs": run_list_view(page.rows), **more})

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
    async def cancel(
        caller: Annotated[Caller, Depends(access)], run_id: UUID, body: CancelRun | None = None
    ) -> JSONResponse:
        reason = None if body is None else body.reason
        asked = await ports.runs.cancel(caller.organization_id, run_id, user_id=caller.user_id, reason=reason)
        run = await ports.runs.get(caller.organization_id, run_id)  # tells a missing run from one that is over
        return JSONResponse({"run_id": str(run_id), "cancelling": asked, "state": run["state"]})

    return router


def _place(cursor: str | None) -> Place | None:
    try:
        return None if cursor is None else place_of(cursor)
    except ValueError as error:
        raise BadRequest("cursor: it is none that a listing gave out; begin without one") from error


def _agent(ports: ApiPorts, name: str) -> AgentDefinition:
    try:
        return ports.agent(name)
    except ProgramFault as error:
        raise BadRequest(f"agent: {error}") from error
