"""The words of a scripted model: what it answers, turn by turn. Framework free; a framework's adapter plays it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Literal

WHOLE = "stop"
"""Stop reason of an answer that is whole."""


@dataclass(frozen=True, slots=True)
class Call:
    """One tool call of a scripted answer."""

    name: str
    """Platform name of the tool, or any name nothing has."""
    arguments: Mapping[str, Any] | str = field(default_factory=dict)
    """The arguments, or the raw text in their place, sound or not."""
    reword: tuple[str, ...] = ()
    """String arguments a rewording model words anew whenever it is asked."""
    id: str | None = None
    """The call id; ``None``: derived from the position, or new at each asking when the model rewords."""


@dataclass(frozen=True, slots=True)
class Say:
    """A final answer."""

    text: str
    stop: str | None = WHOLE
    """Stop reason; ``"length"`` for an answer at its token limit, ``None`` for a stream that ended early."""


@dataclass(frozen=True, slots=True)
class Calls:
    """An answer that proposes calls."""

    calls: Sequence[Call]
    text: str = ""
    stop: str | None = WHOLE
    """As in ``Say``."""


@dataclass(frozen=True, slots=True)
class Fail:
    """A request the provider refuses."""

    status: int = 503
    message: str = "the provider is overloaded"
    retry_after_s: float | None = None


@dataclass(frozen=True, slots=True)
class SeenCall:
    """A call as it stands in the history."""

    id: str
    name: str
    """Model-facing name."""
    arguments_text: str


@dataclass(frozen=True, slots=True)
class SeenMessage:
    """A message of the history a scripted model is asked with."""

    role: Literal["system", "user", "assistant", "tool"]
    text: str
    calls: tuple[SeenCall, ...] = ()
    """Calls of an assistant message."""
    call_id: str | None = None
    """The call a tool message answers."""
    tool_name: str | None = None


@dataclass(frozen=True, slots=True)
class Usage:
    """What one scripted request reports."""

    input_tokens: int = 100
    output_tokens: int = 20
    cached_tokens: int = 0
    reasoning_tokens: int = 0
    cost: Decimal | None = None


Answered = Say | Calls
Turn = Answered | Callable[[Sequence[SeenMessage]], Answered]
"""One turn of a script: an answer, or a function of the history."""
