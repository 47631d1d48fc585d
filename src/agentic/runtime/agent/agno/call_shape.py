"""Brings the calls of an answer into the shape every provider takes back.

Some servers leave out a call's type, or number their calls from one; agno keeps the gap as a call of nothing, which no provider
takes in the next request.
"""

from typing import Any

from agno.models.message import Message


def complete(message: Message) -> None:
    """Drop the gaps, and say of each call that it is one of a function where the provider said nothing."""
    calls: list[dict[str, Any]] = [call for call in message.tool_calls or [] if call.get("function")]
    for call in calls:
        if call.get("type") is None:
            call["type"] = "function"
    message.tool_calls = calls or None
