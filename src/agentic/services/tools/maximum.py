"""The most an agent's tools may do: a bound checked when its definition is published, not when a call is made (ADR 0027)."""

from typing import Final

from agentic.contract.values import Value
from agentic.services.tools.models import Risk, SideEffects, ToolSpec

_EFFECTS: Final = tuple(SideEffects)
_RISKS: Final = tuple(Risk)


class MaximumClass(Value):
    """An upper bound on tools. ``None`` bounds nothing.

    Attributes:
        side_effects: the strongest effect: none < read < write < send.
        risk: the highest risk: low < medium < high.
    """

    side_effects: SideEffects | None = None
    risk: Risk | None = None

    def excess(self, spec: ToolSpec) -> str | None:
        """What of the tool is beyond the bound, in words; ``None`` when nothing is."""
        beyond = []
        if self.side_effects is not None and _EFFECTS.index(spec.side_effects) > _EFFECTS.index(self.side_effects):
            beyond.append(f"a {spec.side_effects}, and at most {self.side_effects} is allowed")
        if self.risk is not None and _RISKS.index(spec.risk) > _RISKS.index(self.risk):
            beyond.append(f"of {spec.risk} risk, and at most {self.risk} is allowed")
        return "; ".join(beyond) or None
