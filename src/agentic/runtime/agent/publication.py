"""What is checked of a definition when it is published: before a run of it starts, and when its app is opened (ADR 0027)."""

from collections.abc import Callable

from agentic.contract.errors import ProgramFault
from agentic.runtime.agent.definition import AgentDefinition
from agentic.services.tools.models import MAX_MODEL_TOOLS, ToolSpec

Find = Callable[[str], ToolSpec | None]
"""The spec of a name, or ``None`` for one that is not registered here, or not yet."""


def publication_faults(definition: AgentDefinition, find: Find) -> list[str]:
    """What keeps a definition from being published, in words; empty when nothing does.

    Args:
        find: a tool it does not know is no fault here: tools of a server arrive later, and a start names those that are missing.
    """
    names = tuple(dict.fromkeys(definition.tools))
    faults = []
    if len(names) > MAX_MODEL_TOOLS:
        faults.append(
            f"agent {definition.name} names {len(names)} tools; providers take at most {MAX_MODEL_TOOLS} in a request, so show it fewer"
        )
    for name in names:
        spec = find(name)
        excess = None if spec is None else definition.maximum.excess(spec)
        if excess is not None:
            faults.append(f"agent {definition.name} may not have {name}: it is {excess}")
    return faults


def check_publication(definition: AgentDefinition, find: Find) -> None:
    """Refuse a definition whose tools exceed its maximum class, or that has more tools than a provider takes.

    Raises:
        ProgramFault: naming every fault.
    """
    faults = publication_faults(definition, find)
    if faults:
        raise ProgramFault("; ".join(faults) + ". Take the tools out, or raise the definition's maximum_class")
