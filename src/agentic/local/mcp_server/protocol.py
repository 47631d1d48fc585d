"""As much of the Model Context Protocol as a server with a few tools needs: a message a line, in and out."""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from agentic.local.mcp_server.notes import Tool

LATEST: Final = "2025-11-25"
_KNOWN: Final = ("2024-11-05", "2025-03-26", "2025-06-18", LATEST)
_NO_METHOD, _BAD_PARAMS, _BAD_MESSAGE = -32601, -32602, -32700


class Refused(Exception):
    """A request that is answered with an error of the protocol."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


def answers(lines: Iterable[bytes], tools: Iterable[Tool]) -> Iterator[bytes]:
    """The answer to each request, a line each; notifications get none.

    Args:
        lines: what the client sends, until it closes.
        tools: what the server offers.
    """
    offered = {tool.name: tool for tool in tools}
    for line in lines:
        reply = _reply(line, offered)
        if reply is not None:
            yield json.dumps({"jsonrpc": "2.0", **reply}, ensure_ascii=False).encode() + b"\n"


def _reply(line: bytes, tools: Mapping[str, Tool]) -> dict[str, Any] | None:
    try:
        message = json.loads(line)
        number, method = message.get("id"), message.get("method")
        params = message.get("params") or {}
    except (ValueError, AttributeError, RecursionError):
        return {"id": None, "error": {"code": _BAD_MESSAGE, "message": "this is no message"}}
    if number is None or method is None:
        return None
    try:
        return {"id": number, "result": _result(method, params, tools)}
    except Refused as refused:
        return {"id": number, "error": {"code": refused.code, "message": str(refused)}}


def _result(method: str, params: Mapping[str, Any], tools: Mapping[str, Tool]) -> dict[str, Any]:
    match method:
        case "initialize":
            asked = params.get("protocolVersion")
            return {
                "protocolVersion": asked if asked in _KNOWN else LATEST,
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "agentic-notes", "version": "1.0.0"},
            }
        case "ping":
            return {}
        case "tools/list":
            return {"tools": [tool.declaration() for tool in tools.values()]}
        case "tools/call":
            return _called(params, tools)
        case _:
            raise Refused(_NO_METHOD, f"there is no method {method}")


def _called(params: Mapping[str, Any], tools: Mapping[str, Tool]) -> dict[str, Any]:
    tool = tools.get(str(params.get("name")))
    if tool is None:
        raise Refused(_BAD_PARAMS, "there is no such tool")
    arguments = params.get("arguments") or {}
    if arguments.keys() != tool.properties.keys() or not all(isinstance(each, str) for each in arguments.values()):
        return _content("the arguments are not those of the tool", failed=True)
    answer = tool.run(**arguments)
    return {**_content(json.dumps(answer, ensure_ascii=False)), "structuredContent": answer}


def _content(text: str, *, failed: bool = False) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": text}], "isError": failed}
