"""The one place where exceptions become HTTP answers: a status, a stable code, a sentence, nothing secret.

A class maps as its nearest ancestor in the table; what is not ours is logged and answered with one fixed text.
"""

import logging
from collections.abc import Mapping
from http import HTTPStatus

import sentry_sdk
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from agentic.api import mcp_failures
from agentic.api.auth import NotAuthenticated
from agentic.contract.errors import AgenticError, Conflict, NotFound, NotPermitted, ProgramFault, RetryLater
from agentic.contract.plain import clean_text
from agentic.services.mcp.config_check import ServerRefused
from agentic.services.mcp.failures import RemoteFailure

_log = logging.getLogger(__name__)
RETRY_AFTER_S = 2
UNEXPECTED = "something went wrong here; it was recorded, and the same request may be sent again later"
_MAX_FAULTS = 20

_TABLE: Mapping[type[AgenticError], tuple[int, str]] = {
    NotAuthenticated: (401, "not_authenticated"),
    ServerRefused: (422, "invalid_request"),
    NotPermitted: (403, "not_permitted"),
    NotFound: (404, "not_found"),
    Conflict: (409, "conflict"),
    RetryLater: (503, "retry_later"),
    ProgramFault: (500, "program_fault"),
    AgenticError: (500, "internal_error"),
}
_HEADERS: Mapping[int, Mapping[str, str]] = {
    401: {"WWW-Authenticate": "Bearer"},
    503: {"Retry-After": str(RETRY_AFTER_S)},
}


class BadRequest(AgenticError):
    """The request asks for something that does not exist or cannot be, in a field of its body."""


def error_response(status: int, code: str, message: str, headers: Mapping[str, str] | None = None) -> JSONResponse:
    """An error as every route answers it."""
    kept = {**_HEADERS.get(status, {}), **(headers or {})}
    told = clean_text(message)  # a name of the caller's may hold what UTF-8 cannot carry
    return JSONResponse({"error": {"code": code, "message": told}}, status_code=status, headers=kept)


def answer_for(error: AgenticError) -> JSONResponse:
    """The answer to one of our exceptions."""
    if isinstance(error, BadRequest):
        return error_response(422, "invalid_request", str(error))
    if isinstance(error, RemoteFailure):
        _log.warning("a remote tool server could not be used: %s", error)
        told = mcp_failures.words_of(error)
        return error_response(mcp_failures.status_of(error.trouble), mcp_failures.code_of(error.trouble), told)
    status, code = next(_TABLE[ancestor] for ancestor in type(error).__mro__ if ancestor in _TABLE)
    if status == HTTPStatus.INTERNAL_SERVER_ERROR:
        _log.error("a request met a fault of the deployment", exc_info=error)
    return error_response(status, code, str(error))


def install(app: FastAPI) -> None:
    """Give an app these answers."""

    @app.exception_handler(AgenticError)
    async def ours(_request: Request, error: AgenticError) -> JSONResponse:
        return answer_for(error)

    @app.exception_handler(RequestValidationError)
    async def invalid(_request: Request, error: RequestValidationError) -> JSONResponse:
        return error_response(422, "invalid_request", _faults(error))

    @app.exception_handler(HTTPException)
    async def plain(_request: Request, error: HTTPException) -> JSONResponse:
        code = HTTPStatus(error.status_code).name.lower()
        return error_response(error.status_code, code, str(error.detail), error.headers)


def _faults(error: RequestValidationError) -> str:
    """Where and what, never the value: a rejected body may hold what belongs in no log."""
    lines = [f"{'.'.join(str(part) for part in fault['loc'])}: {fault['msg']}" for fault in error.errors()]
    return "; ".join(lines[:_MAX_FAULTS])


class FaultBarrier:
    """The outermost layer: an exception nobody foresaw is reported once and answered with a fixed text."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, and answer for what escapes."""
        started = False

        async def watched(message: Message) -> None:
            nonlocal started
            started = started or message["type"] == "http.response.start"
            await send(message)

        try:
            await self._app(scope, receive, watched)
        except Exception as error:
            if scope["type"] != "http":
                raise
            _log.exception("a request failed unexpectedly")
            sentry_sdk.capture_exception(error)
            if started:  # half an answer cannot be taken back; the server closes the connection
                raise
            await error_response(500, "internal_error", UNEXPECTED)(scope, receive, send)
