"""What every research tool declares alike: a metered read of a vendor, whose answer is text from outside."""

from collections.abc import Callable
from decimal import Decimal
from typing import Any

from agentic.services.tools.declarations import HandlerFunction, Tool, vendor_tool
from agentic.services.tools.handlers.retries import RetryBudget

_DECIDING_S = 4
"""Seconds for deciding and holding the money, so that the last request still fits."""


def research_tool(
    name: str, description: str, *, cost_bound: Decimal, retries: RetryBudget, **declared: Any
) -> Callable[[HandlerFunction], Tool]:
    """Declare a research tool.

    Args:
        cost_bound: dollars one call can cost at most.
        retries: how often it asks its vendor; the whole of it fits into the time the call is given.
        **declared: as for ``vendor_tool``.
    """
    return vendor_tool(
        name,
        description,
        metered=True,
        cost_bound=cost_bound,
        retries=retries,
        timeout_s=retries.total_s + _DECIDING_S,
        **declared,
    )
