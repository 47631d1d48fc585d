"""Why a provider stopped, read from its own event or response, since agno drops it.

Without it a cut answer looks whole: the Anthropic SDK repairs a cut call into a smaller, valid one (ADR 0004). An answer
whose reason is missing is not whole.
"""

from typing import Any

STOP_KEY = "_stop"
"""Where the reason is kept in a message's ``provider_data``; no provider class sends it."""

_WHOLE = frozenset(
    {
        "stop",  # OpenAI chat and those that speak its format; Ollama
        "tool_calls",
        "function_call",
        "end_turn",  # Anthropic
        "tool_use",
        "stop_sequence",
        "STOP",  # Gemini
        "completed",  # OpenAI responses
        "COMPLETE",  # Cohere
        "TOOL_CALL",
    }
)


def is_whole(reason: object) -> bool:
    """Whether an answer that ended for this reason is all the model meant to say."""
    return isinstance(reason, str) and reason in _WHOLE


def stop_reason(event: Any) -> str | None:
    """The reason in a provider's stream event or whole response; ``None`` when this one does not carry it."""
    kind = getattr(event, "type", None)
    if kind in ("response.completed", "response.incomplete"):
        return _text(event.response.status)
    if kind == "message_stop":
        return _text(getattr(getattr(event, "message", None), "stop_reason", None))
    if getattr(event, "object", None) == "response":
        return _text(event.status)
    for listed in ("choices", "candidates"):
        items = getattr(event, listed, None)
        if items:
            return _text(getattr(items[0], "finish_reason", None))
    for name in ("stop_reason", "finish_reason", "done_reason"):
        reason = _text(getattr(event, name, None))
        if reason is not None:
            return reason
    return None


def _text(reason: object) -> str | None:
    value = getattr(reason, "value", reason)
    return value if isinstance(value, str) else None
