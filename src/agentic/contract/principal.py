"""Who a run acts for, and how much it may use."""

from decimal import Decimal
from enum import StrEnum
from uuid import UUID

from pydantic import Field

from agentic.contract.tool_patterns import covers
from agentic.contract.values import Value


class Role(StrEnum):
    """What a person may do in an organization; each role holds the rights of those before it."""

    MEMBER = "member"
    """Starts runs and reads them."""
    APPROVER = "approver"
    """Also decides approvals."""
    OPERATOR = "operator"
    """Also settles uncertain outcomes."""
    ADMIN = "admin"
    """Also changes tools, rules and members."""

    def holds(self, needed: "Role") -> bool:
        """Whether this role includes the rights of ``needed``."""
        order = tuple(Role)
        return order.index(self) >= order.index(needed)


class Principal(Value):
    """The identity a call runs under. Never part of what a model supplies (T2)."""

    organization_id: UUID
    user_id: UUID | None = None
    """``None`` for a run that no person started."""
    scopes: tuple[str, ...] = ()
    """Platform tool names the run may call: the definition's tools that the caller also holds. ``mcp.<server>.*`` is all of a server."""

    def may_name(self, tool: str) -> bool:
        """Whether the frozen visibility holds this tool; authority is decided live, per call."""
        return any(covers(scope, tool) for scope in self.scopes)


MOST = 1_000_000_000
"""No ceiling is higher: a bound that the database cannot compare with would leave its run unled for ever."""


class RunCeilings(Value):
    """Upper bounds of one run. ``None`` means unbounded."""

    max_model_requests: int | None = Field(default=100, ge=1, le=MOST)
    """Provider requests over the whole run."""
    max_tool_calls: int | None = Field(default=200, ge=1, le=MOST)
    """Calls that ran or were refused; a replay costs none."""
    max_run_duration_s: int | None = Field(default=3600, ge=1, le=MOST)
    """Leased seconds, not waiting ones (ADR 0023)."""
    max_cost: Decimal | None = Field(default=None, ge=0, le=MOST, decimal_places=30)
    """Money over the run's tree, in the meter's currency."""

    def lowered_by(self, asked: "RunCeilings") -> "RunCeilings":
        """These, each lowered to what ``asked`` names explicitly; nothing rises, and what it leaves out stays as it is."""
        lower = {name: _lower(getattr(self, name), getattr(asked, name)) for name in asked.model_fields_set}
        return self.model_copy(update=lower)


def _lower(one: Decimal | int | None, other: Decimal | int | None) -> Decimal | int | None:
    return min((bound for bound in (one, other) if bound is not None), default=None)
