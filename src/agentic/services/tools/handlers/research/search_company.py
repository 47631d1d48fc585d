"""``research.search_company``: what the web says about a company, by Parallel."""

from typing import Annotated

from pydantic import BaseModel, Field

from agentic.services.tools.context import CallContext
from agentic.services.tools.declarations import Tool
from agentic.services.tools.handlers.research import parallel
from agentic.services.tools.handlers.research.arguments import MAX_RESULTS, Limit
from agentic.services.tools.handlers.research.declaring import research_tool
from agentic.services.tools.handlers.research.prices import ResearchPrices
from agentic.services.tools.handlers.research.vendor import Account


class CompanyQuery(BaseModel):
    """Arguments of ``research.search_company``."""

    objective: str = Field(
        min_length=1, max_length=2_000, description="What to find out about which company, in a sentence or two."
    )
    queries: list[Annotated[str, Field(min_length=1, max_length=200)]] = Field(
        min_length=1, max_length=5, description="Two or three searches of 3 to 6 words that lead there."
    )
    limit: Limit = MAX_RESULTS


class CompanySource(BaseModel):
    """One page that speaks of the company."""

    url: str
    title: str | None
    published: str | None
    excerpts: list[str]


def search_company(account: Account, prices: ResearchPrices) -> Tool:
    """The tool, over a Parallel account."""

    @research_tool(
        "research.search_company",
        "Search the web for what is known of a company. Answers pages with excerpts; an empty list when there are none.",
        cost_bound=prices.parallel_request,
        retries=account.retries,
        max_results=MAX_RESULTS,
    )
    async def handler(ctx: CallContext, args: CompanyQuery) -> list[CompanySource]:
        found = await parallel.search(
            ctx, account, prices, objective=args.objective, queries=args.queries, limit=args.limit
        )
        return [
            CompanySource(url=each.url, title=each.title, published=each.publish_date, excerpts=each.excerpts or [])
            for each in found
        ]

    return handler
