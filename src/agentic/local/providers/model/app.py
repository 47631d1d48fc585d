"""The provider's HTTP face, as a plain ASGI application: it decides packet by packet what leaves, and may drop the line."""

import json
from collections.abc import Awaitable, Callable, Iterator, MutableMapping
from typing import Any

from agentic.local.providers.model import chat, responses
from agentic.local.providers.model.script import Answer, ModelScript, Refusal, Request

_FORMATS = {"/chat/completions": chat, "/responses": responses}

Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
AsgiApp = Callable[[MutableMapping[str, Any], Receive, Send], Awaitable[None]]


def model_app(script: ModelScript) -> AsgiApp:
    """The application.

    Args:
        script: what it answers from; may be looked into, and added to, while it serves.
    """

    async def app(scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            raise ValueError(f"this provider speaks HTTP alone, not {scope['type']}")
        path = str(scope["path"])
        wire = next((module for end, module in _FORMATS.items() if path.endswith(end)), None)
        raw = await _body(receive)
        if wire is None or scope["method"] != "POST":
            return await _refuse(send, Refusal(status=404, message=f"no such endpoint: {scope['method']} {path}"))
        try:
            body = json.loads(raw)
        except ValueError:
            return await _refuse(send, Refusal(status=400, message="the request is not JSON"))
        reply = script.take(Request(path=path, raw=raw, body=body))
        if isinstance(reply, Refusal):
            return await _refuse(send, reply)
        if body.get("stream"):
            return await _stream(send, reply, wire.events(reply))
        if reply.wire.hold is not None:
            await reply.wire.hold.stand()
        return await _whole(send, 200, json.dumps(wire.plain(reply)).encode())

    return app


async def _stream(send: Send, answer: Answer, events: list[dict[str, Any] | str]) -> None:
    wire = answer.wire
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/event-stream")]})
    for number, event in enumerate(events):
        if wire.hold is not None and wire.hold.after == number:
            await wire.hold.stand()
        if wire.cut_after == number:
            return  # the server drops a connection whose response was not completed
        for packet in _packets(wire.raw.get(number, b"") + _line(event), wire.packet_bytes):
            await send({"type": "http.response.body", "body": packet, "more_body": True})
    if wire.cut_after is not None:
        return
    await send({"type": "http.response.body", "body": wire.raw.get(len(events), b""), "more_body": False})


def _line(event: dict[str, Any] | str) -> bytes:
    if isinstance(event, str):
        return f"data: {event}\n\n".encode()
    name = f"event: {event['type']}\n" if "type" in event else ""
    return f"{name}data: {json.dumps(event, ensure_ascii=False)}\n\n".encode()


def _packets(data: bytes, size: int | None) -> Iterator[bytes]:
    if size is None:
        yield data
        return
    for at in range(0, len(data), size):
        yield data[at : at + size]


async def _refuse(send: Send, refusal: Refusal) -> None:
    error = {"message": refusal.message, "type": "error", "param": None, "code": refusal.code}
    body = refusal.body if refusal.body is not None else json.dumps({"error": error}).encode()
    await _whole(send, refusal.status, body, retry_after=refusal.retry_after)


async def _whole(send: Send, status: int, body: bytes, *, retry_after: str | None = None) -> None:
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    if retry_after is not None:
        headers.append((b"retry-after", retry_after.encode()))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body, "more_body": False})


async def _body(receive: Receive) -> bytes:
    parts = []
    while True:
        message = await receive()
        parts.append(message.get("body", b""))
        if not message.get("more_body", False):
            return b"".join(parts)
