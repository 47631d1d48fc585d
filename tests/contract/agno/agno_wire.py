"""A provider on the loopback that answers from a list and keeps every request body it was sent."""

import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True, kw_only=True)
class WireCall:
    """One call of a provider's answer."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, kw_only=True)
class Reply:
    """One answer of a provider, before it is put into a dialect."""

    text: str = ""
    calls: tuple[WireCall, ...] = ()
    stop: str = "whole"
    """``whole``, ``limit`` (the provider's token limit) or ``missing`` (the stream ends early, cleanly)."""
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Encoded:
    """A reply as bytes of one dialect."""

    content_type: str
    body: bytes


class Provider:
    """What a test reads of the endpoint."""

    def __init__(self, base_url: str) -> None:
        self.base_url = base_url
        self.bodies: list[dict[str, Any]] = []
        self.paths: list[str] = []


@contextmanager
def provider(replies: Sequence[Reply], encode: Any) -> Iterator[Provider]:
    """Serve the replies in order on a free port; ``encode(reply)`` puts one into the dialect."""
    waiting = list(replies)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            served.paths.append(self.path)
            served.bodies.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
            reply = waiting.pop(0) if waiting else Reply(status=418)
            if reply.status == 200:
                encoded = encode(reply)
            else:
                error = {"error": {"message": f"status {reply.status}", "type": "test", "code": reply.status}}
                encoded = Encoded(content_type="application/json", body=json.dumps(error).encode())
            self.send_response(reply.status)
            for name, value in reply.headers.items():
                self.send_header(name, value)
            self.send_header("content-type", encoded.content_type)
            self.send_header("content-length", str(len(encoded.body)))
            self.send_header("connection", "close")
            self.end_headers()
            self.wfile.write(encoded.body)
            self.close_connection = True

        def log_message(self, *_: Any) -> None:
            """Nothing is printed."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    served = Provider(f"http://127.0.0.1:{server.server_port}")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield served
    finally:
        server.shutdown()
        server.server_close()
        thread.join(timeout=5)
