"""The provider's HTTP face: paths, bearer key, envelopes, headers. What a send does is the store's."""

import hmac
import time
from collections.abc import Awaitable, Callable
from typing import Any

from fastapi import FastAPI, Request, Response
from starlette.exceptions import HTTPException

from agentic.local.providers.mail.idempotency import Answer
from agentic.local.providers.mail.reading import BadQuery, page, selected
from agentic.local.providers.mail.store import MailStore, error, success

DEFAULT_ADDRESS = "me@nordlys.example"
MAX_JSON_BYTES = 3 * 1024 * 1024


def mail_app(store: MailStore, api_key: str, grant_id: str, *, address: str = DEFAULT_ADDRESS) -> FastAPI:
    """The application.

    Args:
        store: what it works on; may be looked into while it serves.
        api_key: the bearer key every request must carry.
        grant_id: the one mailbox.
        address: that mailbox's own address, the sender of what it sends.
    """
    app = FastAPI(title="Local mail provider", openapi_url=None)
    created_at = int(time.time())

    @app.middleware("http")
    async def authenticated(request: Request, serve: Callable[[Request], Awaitable[Response]]) -> Response:
        scheme, _, given = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer" and hmac.compare_digest(given.strip().encode(), api_key.encode()):
            return await serve(request)
        number = _arrived(store, request)
        return _respond(store, number, error(401, "unauthorized", "Unauthorized"))

    @app.post("/v3/grants/{grant}/messages/send")
    async def send(grant: str, request: Request) -> Response:
        body = await request.body()
        number = _arrived(store, request, body)
        refusal = refused_grant(grant)
        if refusal is not None:
            return _respond(store, number, refusal)
        if len(body) > MAX_JSON_BYTES:
            return _respond(store, number, error(400, "api.invalid_request_payload", "The request is larger than 3 MB"))
        answer, replayed = await store.send(
            grant_id=grant_id, address=address, key=request.headers.get("idempotency-key"), payload=body
        )
        return _respond(store, number, answer, replayed=replayed)

    @app.get("/v3/grants/{grant}/messages")
    async def list_messages(grant: str, request: Request) -> Response:
        number = _arrived(store, request)
        refusal = refused_grant(grant)
        if refusal is not None:
            return _respond(store, number, refusal)
        try:
            data, cursor = page(store.mailbox, dict(request.query_params))
        except BadQuery as problem:
            return _respond(store, number, error(400, "invalid_request_error", str(problem)))
        return _respond(store, number, store.read(success(data, **({"next_cursor": cursor} if cursor else {}))))

    @app.get("/v3/grants/{grant}/messages/{message_id:path}")
    async def get_message(grant: str, message_id: str, request: Request) -> Response:
        number = _arrived(store, request)
        refusal = refused_grant(grant)
        if refusal is not None:
            return _respond(store, number, refusal)
        for message in store.mailbox:
            if message.id == message_id:
                found = success(selected(message, dict(request.query_params)))
                return _respond(store, number, store.read(found))
        return _respond(store, number, error(404, "not_found_error", "There is no such message"))

    @app.get("/v3/grants")
    async def list_grants(request: Request) -> Response:
        return _respond(store, _arrived(store, request), success([grant_data()]))

    @app.get("/v3/grants/{grant}")
    async def get_grant(grant: str, request: Request) -> Response:
        number = _arrived(store, request)
        return _respond(store, number, success(grant_data()) if names(grant) else _no_grant())

    @app.exception_handler(HTTPException)
    async def refused(request: Request, problem: HTTPException) -> Response:
        number = _arrived(store, request)
        return _respond(
            store, number, error(problem.status_code, "not_found_error", f"No such resource: {problem.detail}")
        )

    def refused_grant(grant: str) -> Answer | None:
        if not names(grant):
            return _no_grant()
        if store.grant_status == "invalid":
            return error(401, "unauthorized", "The grant is no longer valid; the user must sign in again")
        return None

    def names(grant: str) -> bool:
        # "me" is for a token that is one mailbox's own; the key of this provider, which has but one, stands for either
        return grant in {grant_id, f"grant:{grant_id}", address, f"email:{address}", "me"}

    def grant_data() -> dict[str, Any]:
        return {
            "id": grant_id,
            "provider": "nylas",
            "grant_status": store.grant_status,
            "email": address,
            "scope": [],
            "blocked": False,
            "created_at": created_at,
            "updated_at": created_at,
            "settings": {},
        }

    return app


def _no_grant() -> Answer:
    return error(404, "not_found_error", "There is no such grant")


def _arrived(store: MailStore, request: Request, body: bytes = b"") -> int:
    key = request.headers.get("idempotency-key")
    return store.arrived(method=request.method, path=request.scope["path"], key=key, body=body)


def _respond(store: MailStore, number: int, answer: Answer, *, replayed: bool = False) -> Response:
    store.answered(number, status=answer.status, replayed=replayed)
    headers = {"idempotent-response": "true"} if replayed else {}
    if answer.retry_after is not None:
        headers["retry-after"] = str(answer.retry_after)
    body = answer.body
    if answer.cut:  # fewer bytes than were announced, so the server drops the connection
        headers["content-length"] = str(len(body))
        body = body[: len(body) // 2]
    return Response(content=body, status_code=answer.status, headers=headers, media_type="application/json")
