"""Makes the call ids of an answer unique over the run's history.

Providers repeat ids now and then; agno then answers two calls with one result, or drops the later result (ADR 0003).
"""

from typing import Any
from uuid import uuid4

from agno.models.message import Message


def used_ids(messages: list[Message]) -> set[str]:
    """Every call id that stands in the messages."""
    used: set[str] = set()
    for message in messages:
        for call in message.tool_calls or []:
            used |= {value for value in (call.get("id"), call.get("call_id")) if value}
    return used


def make_unique(message: Message, history: list[Message]) -> None:
    """Rename the calls of ``message`` whose id is missing, was used before, or stands twice in the message itself.

    The new id keeps the provider's prefix, which the responses API checks, and is written wherever the answer is replayed from.
    """
    used = used_ids(history)
    for position, call in enumerate(message.tool_calls or []):
        old = call.get("id")
        both = [value for value in (old, call.get("call_id")) if value]
        if not both or len(used.intersection(both)) > 0:
            call["id"] = _fresh(old)
            if call.get("call_id"):
                call["call_id"] = _fresh(call["call_id"])
            _rename_echo(message, position, call["id"])
        used |= {value for value in (call["id"], call.get("call_id")) if value}


def _fresh(old: object) -> str:
    prefix = old.split("_", 1)[0] if isinstance(old, str) and "_" in old else "call"
    return f"{prefix[:8]}_{uuid4().hex[:24]}"


def _rename_echo(message: Message, position: int, new: str) -> None:
    """Claude's answers are replayed from their own blocks, so the id changes there too."""
    blocks: list[Any] = (message.provider_data or {}).get("content_blocks") or []
    uses = [block for block in blocks if isinstance(block, dict) and block.get("type") == "tool_use"]
    if position < len(uses):
        uses[position]["id"] = new
