"""The server that calls of remote tools are measured with: the least that speaks the protocol, with the standard library alone.

`python mcp_server.py` answers over its standard streams; `python mcp_server.py http` prints its address on loopback and answers there.
"""

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

TOOLS = [
    {"name": name, "description": words, "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}}}
    for name, words in (("find", "Finds a note."), ("save", "Saves a note."))
]


def answer(message: dict[str, Any]) -> dict[str, Any] | None:
    """What is said to one message; nothing to a note."""
    if "id" not in message:
        return None
    result: dict[str, Any]
    match message["method"]:
        case "initialize":
            result = {
                "protocolVersion": message["params"]["protocolVersion"],
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "measured", "version": "1"},
            }
        case "tools/list":
            result = {"tools": TOOLS}
        case "tools/call":
            result = {"content": [{"type": "text", "text": message["params"]["arguments"]["text"]}]}
        case _:
            result = {}
    return {"jsonrpc": "2.0", "id": message["id"], "result": result}


class Endpoint(BaseHTTPRequestHandler):
    """One endpoint of streamable HTTP that never streams."""

    protocol_version = "HTTP/1.1"
    wbufsize = 64 * 1024  # head and body leave together
    disable_nagle_algorithm = True

    def do_POST(self) -> None:
        """A message."""
        message = json.loads(self.rfile.read(int(self.headers["content-length"])))
        said = answer(message)
        self._reply(202 if said is None else 200, b"" if said is None else json.dumps(said).encode())

    def do_GET(self) -> None:
        """No stream of its own."""
        self._reply(405, b"")

    def do_DELETE(self) -> None:
        """The end of a session."""
        self._reply(200, b"")

    def log_message(self, format: str, *args: object) -> None:
        """Nothing is logged."""

    def _reply(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Mcp-Session-Id", "measured")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def main() -> None:
    """Serves until its input ends, or until it is ended."""
    if sys.argv[1:] == ["http"]:
        server = ThreadingHTTPServer(("127.0.0.1", 0), Endpoint)
        server.daemon_threads = True
        print(f"http://127.0.0.1:{server.server_address[1]}/mcp", flush=True)
        server.serve_forever()
    for line in sys.stdin:
        if (said := answer(json.loads(line))) is not None:
            sys.stdout.write(json.dumps(said) + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
