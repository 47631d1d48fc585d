"""The names in a history as providers take them back.

A model now and then calls a name that no provider accepts in a request, such as one with a dot or none at all; replayed as it is, it
would have every later request of the run refused. The stored message keeps what the model wrote; only the view that is sent differs.
"""

import re
from typing import Any

from agno.models.message import Message

from agentic.services.tools.models import MAX_MODEL_NAME_LENGTH

_TAKEN = re.compile(rf"[A-Za-z0-9_-]{{1,{MAX_MODEL_NAME_LENGTH}}}")
_OTHER = re.compile(r"[^A-Za-z0-9_-]")


def sendable(message: Message) -> Message:
    """The message itself, or a copy with other names where a provider would refuse one."""
    if message.role == "tool":
        name = message.tool_name or ""
        return message if not name or _is_taken(name) else message.model_copy(update={"tool_name": _other(name)})
    if all(_is_taken(holder.get("name")) for holder in _named(message)):
        return message
    copy = message.model_copy(deep=True)
    for holder in _named(copy):
        if not _is_taken(holder.get("name")):
            holder["name"] = _other(holder.get("name"))
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
