"""A cap on request bodies, kept whether or not the client says their length. Routes outside ``/v1`` bring their own."""

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from agentic.api.errors import error_response

BODY_BYTES = 64 * 1024
RUN_BODY_BYTES = 512 * 1024
"""A run's input has at most 256 KiB; quotes, line feeds and backslashes take twice that in JSON."""
PREFIX = "/v1/"
RUNS_PATH = "/v1/runs"


class BodyLimit:
    """Reads a body up to its cap before anybody else sees it, so that nobody below has to count."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it with 413."""
        if scope["type"] != "http" or not scope["path"].startswith(PREFIX) or scope["method"] in ("GET", "HEAD"):
            await self._app(scope, receive, send)
            return
        cap = RUN_BODY_BYTES if scope["path"] == RUNS_PATH else BODY_BYTES
        body = None if _declared(scope) > cap else await _read(receive, cap)
        if body is None:
            await error_response(413, "too_large", f"the body is larger than {cap // 1024} KiB")(scope, receive, send)
            return
        await self._app(scope, _replay(body, receive), send)


def _declared(scope: Scope) -> int:
    for name, value in scope["headers"]:
        if name == b"content-length" and value.isdigit():
            return int(value)
    return 0


async def _read(receive: Receive, cap: int) -> list[Message] | None:
    messages: list[Message] = []
    size = 0
    while True:
        message = await receive()
        messages.append(message)
        size += len(message.get("body", b""))
        if size > cap:
            return None
        if message["type"] != "http.request" or not message.get("more_body", False):
            return messages


def _replay(messages: list[Message], receive: Receive) -> Receive:
    waiting = iter(messages)

    async def next_message() -> Message:
        for message in waiting:
            return message
        return await receive()

    return next_message
