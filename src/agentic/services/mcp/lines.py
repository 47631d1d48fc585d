"""From a line of a server's output to a message. Pure.

What is no message costs itself alone. Half a character, as programs leave it that cut a text, costs that character, and an answer that
cannot be read is told to whoever waits for it, at once and not at the deadline.
"""

import json
import re
from typing import Any, Final

from mcp_types import PARSE_ERROR, ErrorData, JSONRPCError, JSONRPCMessage, jsonrpc_message_adapter

_HALF_CHARACTER: Final = re.compile("[\ud800-\udfff]")


def message_of(line: bytes) -> JSONRPCMessage | None:
    """The message; an error of the code for what cannot be parsed where it is an answer otherwise; ``None`` for what is none."""
    if (message := _read(line)) is not None:
        return message
    try:
        raw = json.loads(line.decode(errors="replace"))
        mended = _HALF_CHARACTER.sub("\N{REPLACEMENT CHARACTER}", json.dumps(raw, ensure_ascii=False))
    except (ValueError, RecursionError):
        return None
    return _read(mended.encode()) or _unreadable(raw)


def _read(line: bytes) -> JSONRPCMessage | None:
    try:
        return jsonrpc_message_adapter.validate_json(line, by_name=False)
    except (ValueError, RecursionError):
        return None


def _unreadable(raw: Any) -> JSONRPCError | None:
    """Only what claims to be an answer is one: programs log JSON with an `id` of their own."""
    if not isinstance(raw, dict) or raw.get("jsonrpc") != "2.0" or raw.keys().isdisjoint(("result", "error")):
        return None
    id = raw.get("id")
    if not isinstance(id, int | str) or isinstance(id, bool):
        return None
    return JSONRPCError(jsonrpc="2.0", id=id, error=ErrorData(code=PARSE_ERROR, message="the answer cannot be read"))
