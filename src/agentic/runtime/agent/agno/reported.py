"""What a provider's own event says beside its words: tokens so far, and an error in the middle of a stream.

agno reads usage where an answer ends, so an answer that is cut would have cost nothing; and it takes some errors for the end of an
answer.
"""

from typing import Any

from agno.exceptions import ModelProviderError


class ProviderSaid(ModelProviderError):
    """An error that arrived inside an answer, with the provider's own word for it."""

    def __init__(self, message: str, code: str | None, *, model_name: str | None) -> None:
        super().__init__(message, model_name=model_name)
        self.code = code


def usage_so_far(event: Any) -> Any:
    """The provider's usage object in this event; ``None`` when it holds none."""
    for holder in (event, getattr(event, "message", None), getattr(event, "response", None)):
        for name in ("usage", "usage_metadata"):
            usage = getattr(holder, name, None)
            if usage is not None:
                return usage
    return None


def error_in(event: Any, *, model_name: str | None) -> ProviderSaid | None:
    """What the responses API reports inside a stream; ``None`` for an event that is no error."""
    kind = getattr(event, "type", None)
    if kind == "response.failed":
        reported = event.response.error
    elif kind == "error" and not hasattr(event, "choices"):
        reported = event
    else:
        return None
    message = getattr(reported, "message", None) or "the response failed"
    code = getattr(reported, "code", None)
    return ProviderSaid(str(message), code if isinstance(code, str) else None, model_name=model_name)
