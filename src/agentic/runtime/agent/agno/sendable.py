"""The calls in a history as providers take them back.

A model now and then calls a name that no provider accepts in a request, such as one with a dot or none at all, or stops in the middle
of its arguments, which some servers parse again; replayed as it is, either would have every later request of the run refused. The
stored message keeps what the model wrote; only the view that is sent differs.
"""

import json
import re
from typing import Any

from agno.models.message import Message

from agentic.services.tools.models import MAX_MODEL_NAME_LENGTH

_TAKEN = re.compile(rf"[A-Za-z0-9_-]{{1,{MAX_MODEL_NAME_LENGTH}}}")
_OTHER = re.compile(r"[^A-Za-z0-9_-]")


def sendable(message: Message) -> Message:
    """The message itself, or a copy with what a provider would refuse put differently."""
    if message.role == "tool":
        name = message.tool_name or ""
        return message if not name or _is_taken(name) else message.model_copy(update={"tool_name": _other(name)})
    functions = [call["function"] for call in message.tool_calls or [] if call.get("function")]
    if all(_is_taken(holder.get("name")) for holder in _named(message)) and all(_is_object(f) for f in functions):
        return message
    copy = message.model_copy(deep=True)
    for holder in _named(copy):
        if not _is_taken(holder.get("name")):
            holder["name"] = _other(holder.get("name"))
    for call in copy.tool_calls or []:
        if call.get("function") and not _is_object(call["function"]):
            call["function"]["arguments"] = _object_of(call["function"].get("arguments"))
    return copy


def _named(message: Message) -> list[dict[str, Any]]:
    """Everything in an answer that holds the name of a call: the calls, and the blocks that Claude is replayed from."""
    blocks = (message.provider_data or {}).get("content_blocks") or []
    uses = [block for block in blocks if isinstance(block, dict) and block.get("type") == "tool_use"]
    return [call["function"] for call in message.tool_calls or [] if call.get("function")] + uses


def _is_taken(name: object) -> bool:
    return isinstance(name, str) and _TAKEN.fullmatch(name) is not None


def _other(name: object) -> str:
    """A name that no tool has, close enough to the written one that the model knows its own call again."""
    return f"unknown_{_OTHER.sub('_', name if isinstance(name, str) else '')}"[:MAX_MODEL_NAME_LENGTH]


def _is_object(function: dict[str, Any]) -> bool:
    try:
        return isinstance(json.loads(function.get("arguments") or ""), dict)
    except (ValueError, TypeError, RecursionError):
        return False


def _object_of(arguments: object) -> str:
    """Arguments that are no object, as one that still shows the model what it wrote."""
    if not isinstance(arguments, str) or not arguments.strip():
        return "{}"
    return json.dumps({"unreadable": arguments}, ensure_ascii=False)
