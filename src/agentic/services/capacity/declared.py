"""What a deployment declares about vendor accounts, lanes and the width of its workflows. Values only."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from agentic.contract.lanes import Lane
from agentic.contract.values import Value

RUNS_AT_ONCE = 20
"""Active runs of one organization in one lane, unless a deployment says otherwise."""


class Node(Value):
    """One call of a workflow, made ``fanout`` times at once at most."""

    type: Literal["node"] = "node"
    tool: str
    fanout: int = Field(default=1, ge=1)


class Sequence(Value):
    """Steps one after the other: the widest of them counts."""

    type: Literal["sequence"] = "sequence"
    steps: tuple[Shape, ...]


class Branch(Value):
    """Alternatives, one of which runs: the widest of them counts."""

    type: Literal["branch"] = "branch"
    ways: tuple[Shape, ...]


class Parallel(Value):
    """Branches that run side by side: they add up."""

    type: Literal["parallel"] = "parallel"
    ways: tuple[Shape, ...]


Shape = Annotated[Node | Sequence | Branch | Parallel, Field(discriminator="type")]


class WorkflowWidth(Value):
    """How wide one workflow can get, and in which lane its runs stand."""

    name: str
    lane: Lane
    shape: Shape


class VendorAccount(Value):
    """One account at a vendor, as its contract says.

    Attributes:
        provider: what the vendor is called in usage lines.
        tools: platform names whose calls reach this account.
        limit: how many calls the account may have in flight.
    """

    provider: str
    tools: tuple[str, ...]
    limit: int = Field(ge=1)


class Capacity(Value):
    """The numbers of a deployment.

    Attributes:
        runs_at_once: active runs of one organization in one lane; the function server holds to it.
        organizations: how many organizations share the vendor accounts.
        accounts: the accounts to check.
        agents_in: in which lanes runs of agents are started.
        workflows: the workflows whose nodes call vendors.
    """

    runs_at_once: int = Field(default=RUNS_AT_ONCE, ge=1)
    organizations: int = Field(default=1, ge=1)
    accounts: tuple[VendorAccount, ...] = ()
    agents_in: tuple[Lane, ...] = (Lane.INTERACTIVE, Lane.BATCH)
    workflows: tuple[WorkflowWidth, ...] = ()
