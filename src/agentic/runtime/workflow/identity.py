"""Which rows a run of a function has: derived from its names, so that a replay anywhere finds the same ones."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from uuid import UUID, uuid5

from pydantic import BaseModel, JsonValue

from agentic.contract.canonical import digest_of
from agentic.contract.errors import ProgramFault
from agentic.contract.trust import Trust

_WORKFLOWS = UUID("5b2c9f0e-3c53-5e6a-9d0b-6f8f0a4c1d27")
MAX_ARGUMENT_BYTES = 256 * 1024


@dataclass(frozen=True, kw_only=True, slots=True)
class NodeCall:
    """The one call of a node."""

    node: str
    tool: str
    arguments_text: str
    trust: Trust
    """The caller's label of the arguments."""

    @property
    def digest(self) -> str:
        """Of tool and arguments: what a node's id stands for within a run of its function."""
        return digest_of(f"{self.tool}\0{self.arguments_text}".encode())


def request_key(workflow: str, run_id: str) -> str:
    """What the function run's container is found by, in its organization.

    Args:
        workflow: the definition's name.
        run_id: the function server's id of the run.
    """
    return f"{workflow}:{run_id}"


def container_id(organization_id: UUID, workflow: str, run_id: str) -> UUID:
    """The run that stands for a run of a function."""
    return uuid5(_WORKFLOWS, f"{organization_id}:{request_key(workflow, run_id)}")


def node_id(container: UUID, node: str) -> UUID:
    """The run of a node."""
    return uuid5(container, node)


def arguments_text(arguments: Mapping[str, JsonValue] | BaseModel) -> str:
    """The arguments as the text that is parsed, digested, shown and executed (N2).

    Raises:
        ProgramFault: they are no JSON, or more than 256 KiB of it.
    """
    value = arguments.model_dump(mode="json", by_alias=True) if isinstance(arguments, BaseModel) else dict(arguments)
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, sort_keys=True, separators=(",", ":"))
        size = len(text.encode())
    except (TypeError, ValueError, RecursionError) as error:
        raise ProgramFault(
            f"the arguments of a node are plain JSON data; these are not ({type(error).__name__})"
        ) from error
    if size > MAX_ARGUMENT_BYTES:
        raise ProgramFault(f"the arguments of a node are {size} bytes; pass an id in place of what is large")
    return text
