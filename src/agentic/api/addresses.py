"""Addresses that can be answered: U+0000 is in no id, name or cursor, and Postgres takes it in no text."""

from starlette.types import ASGIApp, Receive, Scope, Send

from agentic.api.errors import error_response


class PlainAddresses:
    """Refuses a request whose path or query holds U+0000, before any route reads a parameter of it."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it with 422."""
        if scope["type"] == "http" and ("\x00" in scope["path"] or b"%00" in scope["query_string"]):
            refusal = error_response(422, "invalid_request", "the address holds U+0000, which is in no id and no name")
            await refusal(scope, receive, send)
            return
        await self._app(scope, receive, send)
