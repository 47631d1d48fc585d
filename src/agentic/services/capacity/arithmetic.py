"""The arithmetic of one vendor account, pure.

For each lane: active runs times the widest single run of that lane; the lanes add up, and the sum may not pass the account's limit.
A child run counts in its own lane, and a run that waits holds no slot, so neither is counted under its parent.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import assert_never

from agentic.contract.lanes import Lane
from agentic.services.capacity.declared import Branch, Capacity, Node, Parallel, Shape, VendorAccount
from agentic.services.capacity.declared import Sequence as Steps
from agentic.services.tools.models import Mode, ToolSpec

READS_AT_ONCE = 8
"""Reads of one turn that an agent runs side by side."""


@dataclass(frozen=True, kw_only=True, slots=True)
class LaneLoad:
    """What one lane can ask of an account."""

    lane: Lane
    runs: int
    """Active runs, over all organizations that share the account."""
    calls: int
    """Calls in flight of the widest run of the lane."""
    widest: str | None
    """The agent or workflow that is that wide; ``None`` when no run of the lane reaches the account."""

    @property
    def product(self) -> int:
        """Calls of the lane at the same moment, at most."""
        return self.runs * self.calls


@dataclass(frozen=True, kw_only=True, slots=True)
class AccountLoad:
    """What all lanes can ask of one account, beside what it allows."""

    account: VendorAccount
    lanes: Sequence[LaneLoad]

    @property
    def calls(self) -> int:
        """Calls at the same moment, at most."""
        return sum(lane.product for lane in self.lanes)

    @property
    def fits(self) -> bool:
        """Whether the account allows that many."""
        return self.calls <= self.account.limit


def width(shape: Shape, tools: Collection[str]) -> int:
    """How many calls of these tools one run of this shape can have in flight."""
    match shape:
        case Node():
            return shape.fanout if shape.tool in tools else 0
        case Steps():
            return max((width(step, tools) for step in shape.steps), default=0)
        case Branch():
            return max((width(way, tools) for way in shape.ways), default=0)
        case Parallel():
            return sum(width(way, tools) for way in shape.ways)
        case _ as never:
            assert_never(never)


def agent_width(specs: Sequence[ToolSpec], tools: Collection[str]) -> int:
    """How many calls of these tools one run of an agent can have in flight: paused calls run one by one, reads side by side."""
    own = [spec for spec in specs if spec.name in tools]
    if any(spec.mode is Mode.INLINE for spec in own):
        return READS_AT_ONCE
    return 1 if own else 0


def account_loads(capacity: Capacity, agents: Mapping[str, Sequence[ToolSpec]]) -> list[AccountLoad]:
    """What each declared account may see at once.

    Args:
        capacity: the declared numbers.
        agents: the tools of each agent, by its name.
    """
    return [
        AccountLoad(account=account, lanes=[_lane(lane, account, capacity, agents) for lane in Lane])
        for account in capacity.accounts
    ]


def unknown_tools(capacity: Capacity, known: Collection[str]) -> list[str]:
    """Tools that an account or a workflow names and the app does not have: each would count as no call at all."""
    named = {tool for account in capacity.accounts for tool in account.tools}
    for flow in capacity.workflows:
        named |= _tools_of(flow.shape)
    return sorted(named.difference(known))


def _tools_of(shape: Shape) -> set[str]:
    match shape:
        case Node():
            return {shape.tool}
        case Steps():
            return {tool for step in shape.steps for tool in _tools_of(step)}
        case Branch() | Parallel():
            return {tool for way in shape.ways for tool in _tools_of(way)}
        case _ as never:
            assert_never(never)


def _lane(lane: Lane, account: VendorAccount, capacity: Capacity, agents: Mapping[str, Sequence[ToolSpec]]) -> LaneLoad:
    widths = {flow.name: width(flow.shape, account.tools) for flow in capacity.workflows if flow.lane is lane}
    if lane in capacity.agents_in:
        widths |= {name: agent_width(specs, account.tools) for name, specs in agents.items()}
    widest = max(widths, key=lambda name: widths[name], default=None)
    calls = widths[widest] if widest is not None else 0
    return LaneLoad(
        lane=lane,
        runs=capacity.runs_at_once * capacity.organizations,
        calls=calls,
        widest=widest if calls else None,
    )
