"""Decides how each call of an answer is met. Pure (ADR 0004)."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from agentic.runtime.agent.ports import ProposedCall
from agentic.services.tools.models import FrozenTool, Mode


class Route(StrEnum):
    """How one call of an answer is met."""

    INLINE = "inline"
    """Runs now, inside the loop: a read that no paused call of the answer comes before."""
    PAUSED = "paused"
    """Runs from its stored proposal, after the pause."""
    GHOST = "ghost"
    """Pauses like the others, is answered and recorded, and never runs."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RoutedCall:
    """A call and how it is met."""

    call: ProposedCall
    route: Route


def route(calls: Sequence[ProposedCall], tools: Iterable[FrozenTool]) -> list[RoutedCall]:
    """Route the calls of one answer, in the model's order.

    Everything behind the first call that does not run inline waits with it: no call of a turn runs before an earlier one is
    settled. Unsound arguments need no route of their own; the invoker answers them wherever the call runs.
    """
    modes = {tool.spec.name: tool.mode for tool in tools}
    routed = []
    pausing = False
    for call in calls:
        if call.fault is not None:
            way = Route.GHOST
        elif pausing or modes[call.tool] is Mode.PAUSED:
            way = Route.PAUSED
        else:
            way = Route.INLINE
        pausing = pausing or way is not Route.INLINE
        routed.append(RoutedCall(call=call, route=way))
    return routed
