"""What a node's durable step returns: plain tagged data. Exceptions become values before the step's end, and exceptions after it.

The function server keeps these for as long as a run of a function lasts, and so does a node's run for as long as runs are kept. Every
form that was ever written is read: fields are added with a default, and a change of meaning is a new ``v``.
"""

from datetime import datetime
from typing import Annotated, Final, Literal

from pydantic import Discriminator, TypeAdapter

from agentic.contract.encoding import encode
from agentic.contract.results import ToolResult
from agentic.contract.values import Value


class Done(Value):
    """The call has its answer, a success or not."""

    v: Literal[1] = 1
    kind: Literal["done"] = "done"
    result: str
    """The answer as JSON text: on its way through a function server no number of it is read and written anew."""

    def answer(self) -> ToolResult:
        """The answer as a value."""
        return ToolResult.model_validate_json(self.result)


class Parked(Value):
    """A person has been asked; nothing runs until there is a decision."""

    v: Literal[1] = 1
    kind: Literal["parked"] = "parked"


class Later(Value):
    """Another worker has the node, or its time has not come."""

    v: Literal[1] = 1
    kind: Literal["later"] = "later"
    due_at: datetime


class Failed(Value):
    """The node ends without an answer."""

    v: Literal[1] = 1
    kind: Literal["failed"] = "failed"
    code: str
    message: str


class Partial(Value):
    """The workflow may not make this call, nor another."""

    v: Literal[1] = 1
    kind: Literal["partial"] = "partial"
    reason: str


Phase = Annotated[Done | Parked | Later | Failed | Partial, Discriminator("kind")]
_PHASE: Final[TypeAdapter[Done | Parked | Later | Failed | Partial]] = TypeAdapter(Phase)


def done(result: ToolResult) -> Done:
    """The phase of an answer."""
    return Done(result=encode(result.model_dump(mode="json")).decode())


def stored(phase: Done | Failed | Partial) -> bytes:
    """A last phase as a node's run keeps it."""
    return encode(phase.model_dump(mode="json"))


def recorded(phase: Done | Parked | Later | Failed | Partial) -> dict[str, object]:
    """A phase as the function server keeps it."""
    return phase.model_dump(mode="json")


def read(value: object) -> Done | Parked | Later | Failed | Partial:
    """A recorded phase."""
    return _PHASE.validate_python(value)


def read_stored(body: bytes) -> Done | Parked | Later | Failed | Partial:
    """A phase as a node's run keeps it."""
    return _PHASE.validate_json(body)
