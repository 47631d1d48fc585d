"""What a workflow is: the tools its function calls, for whom, and how much it may use."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field

import inngest

from agentic.contract.errors import ProgramFault
from agentic.contract.lanes import Lane
from agentic.contract.principal import Principal, RunCeilings
from agentic.contract.trust import Trust

_NAME = re.compile(r"[a-z][a-z0-9_-]{0,62}")
_NODE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")
DEADLINE_S = 30 * 24 * 3600


@dataclass(frozen=True, kw_only=True, slots=True)
class Workflow:
    """A function of yours that calls governed tools. Two deployments that share a database mean the same by one name.

    Attributes:
        name: lower-case letters, digits, ``_`` and ``-``, at most 63, starting with a letter. Grants hang on it.
        tools: platform names of the tools its nodes may call; ``mcp.<server>.*`` is all that an MCP server offers when the function is
            called first. Granted to it when it first runs in an organization; a grant that is revoked there stays revoked.
        acts_for: who a run acts for, by the event that started it. The event's sender is believed, so take organization and
            person from what your own code put into it.
        trust: of that event; what an outsider could have written into it is external. It counts until a node's answer is lower.
        ceilings: of one run of the function, over all its nodes. Model requests do not occur, and leased time is not counted.
        lane: stored with the runs.
        deadline_s: seconds by the calendar, waiting included; what still goes on then ends as ``deadline``.
    """

    name: str
    tools: tuple[str, ...]
    acts_for: Callable[[inngest.Event], Principal]
    trust: Trust = Trust.EXTERNAL
    ceilings: RunCeilings = field(default_factory=RunCeilings)
    lane: Lane = Lane.BATCH
    deadline_s: float = DEADLINE_S

    def __post_init__(self) -> None:
        """Refuse what could not run.

        Raises:
            ProgramFault: the name, or a deadline that is over at once.
        """
        if not _NAME.fullmatch(self.name):
            raise ProgramFault(
                f"the workflow's name {self.name!r} is not lower-case letters, digits, '_' and '-', at most 63, starting with a letter"
            )
        if self.deadline_s <= 0:
            raise ProgramFault(f"the workflow {self.name} has a deadline of {self.deadline_s} s; give it time")

    @property
    def definition(self) -> str:
        """Under which name its grants and runs stand; no agent can have it."""
        return f"workflow:{self.name}"


def checked_node(node: str) -> str:
    """The id of a node or of a wait.

    Raises:
        ProgramFault: it is none.
    """
    if not _NODE.fullmatch(node):
        raise ProgramFault(
            f"the node id {node!r} is not letters, digits, '_', '.' and '-', at most 100, starting with a letter or digit"
        )
    return node
