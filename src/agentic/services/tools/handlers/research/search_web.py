"""``research.search_web``: pages of the web, by Exa."""

from datetime import date

from pydantic import BaseModel, Field

from agentic.services.tools.context import CallContext
from agentic.services.tools.declarations import Tool
from agentic.services.tools.handlers.research import exa
from agentic.services.tools.handlers.research.arguments import MAX_RESULTS, Domain, Limit
from agentic.services.tools.handlers.research.declaring import research_tool
from agentic.services.tools.handlers.research.prices import ResearchPrices
from agentic.services.tools.handlers.research.vendor import Account


class WebQuery(BaseModel):
    """Arguments of ``research.search_web``."""

    query: str = Field(min_length=1, max_length=1_000, description="What to find, in natural language.")
    limit: Limit = MAX_RESULTS
    include_domains: list[Domain] = Field(default=[], max_length=10, description="Only pages of these domains.")
    exclude_domains: list[Domain] = Field(default=[], max_length=10, description="No pages of these domains.")
    published_after: date | None = Field(default=None, description="Leaves out older pages, and those without a date.")


class WebPage(BaseModel):
    """One page."""

    id: str
    url: str
    title: str | None
    published: str | None
    author: str | None
    excerpts: list[str]


def search_web(account: Account, prices: ResearchPrices) -> Tool:
    """The tool, over an Exa account."""

    @research_tool(
        "research.search_web",
        "Search the web. Answers pages with excerpts, the best first; an empty list when there are none.",
        cost_bound=prices.exa_request,
        retries=account.retries,
        max_results=MAX_RESULTS,
        item_kind="web_page",
    )
    async def handler(ctx: CallContext, args: WebQuery) -> list[WebPage]:
        found = await exa.search(ctx, account, prices, query=args.query, limit=args.limit, filters=_filters(args))
        return [
            WebPage(
                id=each.id,
                url=each.url,
                title=each.title,
                published=each.publishedDate,
                author=each.author,
                excerpts=each.highlights or [],
            )
            for each in found
        ]

    return handler


def _filters(args: WebQuery) -> dict[str, object]:
    filters: dict[str, object] = {}
    if args.include_domains:
        filters["includeDomains"] = args.include_domains
    if args.exclude_domains:
        filters["excludeDomains"] = args.exclude_domains
    if args.published_after is not None:
        filters["startPublishedDate"] = f"{args.published_after.isoformat()}T00:00:00.000Z"
    return filters
