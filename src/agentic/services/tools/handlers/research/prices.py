"""What research vendors charge, as far as the package must know it before or beside a vendor's own word.

List prices of 2026, which differ by plan: give the deployment's own. Dollars of Exa and Parallel are what a line costs when the
vendor names no amount; a credit's price here only bounds a call, for credits are counted by the prices that `agentic prices` keeps.
"""

from dataclasses import dataclass, fields
from decimal import Decimal

from agentic.contract.errors import ProgramFault


@dataclass(frozen=True, kw_only=True, slots=True)
class ResearchPrices:
    """Prices in US dollars and amounts in credits.

    Attributes:
        exa_request: dollars for a search of up to 10 results, their highlights included.
        parallel_request: dollars for a search of up to 10 results.
        parallel_further_result: dollars for each result beyond them that Parallel says it counted.
        firecrawl_credit: dollars one credit costs at most, on the deployment's plan.
        hunter_credit: the same for Hunter.
        hunter_finder_credits: for an address that was found.
        hunter_enrichment_credits: for a company that was found; sources differ, from 0.2 to 1.

    Raises:
        ProgramFault: one of them is negative or no finite number.
    """

    exa_request: Decimal = Decimal("0.007")
    parallel_request: Decimal = Decimal("0.005")
    parallel_further_result: Decimal = Decimal("0.001")
    firecrawl_credit: Decimal = Decimal("0.01")
    hunter_credit: Decimal = Decimal("0.05")
    hunter_finder_credits: Decimal = Decimal(1)
    hunter_enrichment_credits: Decimal = Decimal("0.2")

    def __post_init__(self) -> None:
        """Refuse what is no price."""
        for each in fields(self):
            amount = getattr(self, each.name)
            if not isinstance(amount, Decimal) or not amount.is_finite() or amount < 0:
                raise ProgramFault(f"{each.name} must be a finite Decimal of no less than 0")
