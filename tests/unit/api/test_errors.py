"""Exceptions as HTTP answers: a stable code, a sentence, nothing secret."""

from datetime import UTC, datetime

import httpx
import pytest
from fastapi import FastAPI
from pydantic import BaseModel

from agentic.api.auth import NotAuthenticated
from agentic.api.errors import UNEXPECTED, FaultBarrier, install
from agentic.contract.errors import (
    AgenticError,
    ClaimInFlight,
    Conflict,
    LeaseLost,
    NotFound,
    NotPermitted,
    ProgramFault,
    RegistryError,
    StorageUnavailable,
)
from agentic.services.mcp.config_check import ServerRefused


class Body(BaseModel):
    age: int


async def answer_to(error: Exception) -> httpx.Response:
    app = FastAPI()
    install(app)
    app.add_middleware(FaultBarrier)

    @app.post("/")
    async def fail() -> None:
        raise error

    @app.post("/body")
    async def body(body: Body) -> None:
        return None

    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://api.test") as http:
        if isinstance(error, TypeError):
            return await http.post("/body", json={"age": "hunter2"})
        return await http.post("/")


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (NotAuthenticated("sign in"), 401, "not_authenticated"),
        (ServerRefused(("url: no", "server_id: no")), 422, "invalid_request"),
        (NotPermitted("no"), 403, "not_permitted"),
        (NotFound("gone"), 404, "not_found"),
        (Conflict("twice"), 409, "conflict"),
        (StorageUnavailable("away"), 503, "retry_later"),
        (ClaimInFlight(tool="email.send", due_at=datetime(2031, 1, 1, tzinfo=UTC)), 503, "retry_later"),
        (ProgramFault("no key"), 500, "program_fault"),
        (RegistryError(["crm.search: no"]), 500, "program_fault"),
        (LeaseLost("late"), 500, "internal_error"),
        (AgenticError("something"), 500, "internal_error"),
    ],
)
async def test_each_of_our_errors_has_its_answer(error: AgenticError, status: int, code: str) -> None:
    answer = await answer_to(error)
    assert answer.status_code == status
    assert answer.json() == {"error": {"code": code, "message": str(error)}}
    assert ("retry-after" in answer.headers) == (status == 503)
    assert ("www-authenticate" in answer.headers) == (status == 401)


async def test_an_unforeseen_exception_is_logged_and_tells_the_caller_nothing(caplog: pytest.LogCaptureFixture) -> None:
    answer = await answer_to(KeyError("password=hunter2"))
    assert answer.status_code == 500
    assert answer.json() == {"error": {"code": "internal_error", "message": UNEXPECTED}}
    assert [record.exc_info is not None for record in caplog.records if record.name == "agentic.api.errors"] == [True]


@pytest.mark.guarantee("B2")
async def test_a_refused_body_is_named_by_its_fields_and_never_quoted() -> None:
    answer = await answer_to(TypeError())
    assert answer.status_code == 422
    assert "body.age" in answer.json()["error"]["message"]
    assert "hunter2" not in answer.text
