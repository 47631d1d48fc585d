"""What an agent is, framework free: frozen into the run when it starts."""

import re

from pydantic import Field, field_validator

from agentic.contract.principal import RunCeilings
from agentic.contract.values import Value
from agentic.services.tools.maximum import MaximumClass
from agentic.services.tools.models import Risk, SideEffects

_NAME = re.compile(r"^[a-z][a-z0-9_-]{0,62}$")


class AgentDefinition(Value):
    """Name, instructions, model and tools of an agent.

    Attributes:
        name: identifies the definition in grants and usage; lower-case letters, digits, ``_`` and ``-``.
        instructions: the system prompt, rendered once and stored with the run; never templated.
        model: a model string, ``provider:model``, or the name of a model registered with the application.
        tools: platform names of the tools the model is shown. ``mcp.<server>.*`` is all that an MCP server offers when the run starts,
            in name order.
        ceilings: bounds of one run.
        maximum_class: the strongest effect its tools may have, none < read < write < send; a definition with a stronger tool is
            refused when it is published. ``None`` bounds nothing.
        maximum_risk: the highest risk its tools may have, likewise.
        max_requests_per_segment: cap on provider requests of one segment.
    """

    name: str
    instructions: str
    model: str
    tools: tuple[str, ...] = ()
    ceilings: RunCeilings = RunCeilings()
    maximum_class: SideEffects | None = None
    maximum_risk: Risk | None = None
    max_requests_per_segment: int = Field(default=40, ge=1)

    @field_validator("name")
    @classmethod
    def _name_grammar(cls, name: str) -> str:
        if not _NAME.match(name):
            raise ValueError(
                "a definition's name is lower-case letters, digits, '_' and '-', at most 63, starting with a letter"
            )
        return name

    @property
    def maximum(self) -> MaximumClass:
        """The bound on its tools as one value."""
        return MaximumClass(side_effects=self.maximum_class, risk=self.maximum_risk)
