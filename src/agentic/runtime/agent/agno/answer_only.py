"""A request whose answer must be words: the tools stay on the wire, choosing one is forbidden, and the model is told why.

The tools and the history stay as they were, so the calls in it keep their definitions and a provider's prompt cache its prefix.
A model that calls a tool all the same is stopped by the run before anything is dispatched.
"""

from typing import Any

from agno.models.message import Message

DIRECTIVE = (
    "No tool can be called any more: research stopped because the same call was being repeated. Answer now from what the results "
    "above hold. Say what is still missing or unsure, and say that research stopped because it was repeating itself."
)
"""The last message of such a request; the run's log never holds it."""


def answer_only(copy: Any, request: dict[str, Any]) -> dict[str, Any]:
    """The arguments of a request, changed so; the caller's messages are left as they are.

    agno hands `tool_choice` on for the OpenAI formats and Gemini, unless the user's `request_params` hold one, which win. Its
    Anthropic classes drop it and take `request_params` alone. A class that knows neither is left with the directive.

    Args:
        copy: a turn's own copy of the user's model; it makes no other request in this turn.
    """
    changed = {**request, "messages": [*request["messages"], Message(role="user", content=DIRECTIVE)]}
    if not request.get("tools"):
        return changed  # Anthropic refuses a choice where there is nothing to choose from
    params = {k: v for k, v in (getattr(copy, "request_params", None) or {}).items() if k != "tool_choice"}
    if is_anthropic(copy):
        params["tool_choice"] = {"type": "none"}
    copy.request_params = params or None
    return {**changed, "tool_choice": "none"}


def is_anthropic(copy: Any) -> bool:
    """Whether the object is of one of agno's Anthropic classes, on whichever cloud."""
    return any(base.__module__.startswith("agno.models.anthropic") for base in type(copy).__mro__)
