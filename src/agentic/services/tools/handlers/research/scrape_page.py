"""``research.scrape_page``: one page as Markdown, by Firecrawl.

The address is the model's, and can carry data out: a rule asks a person unless the address was seen before (ADR 0026).
"""

from pydantic import BaseModel, Field

from agentic.services.tools.context import CallContext
from agentic.services.tools.declarations import Tool
from agentic.services.tools.handlers.research import firecrawl
from agentic.services.tools.handlers.research.declaring import research_tool
from agentic.services.tools.handlers.research.prices import ResearchPrices
from agentic.services.tools.handlers.research.vendor import Account


class PageAddress(BaseModel):
    """Arguments of ``research.scrape_page``."""

    url: str = Field(
        max_length=2_048,
        pattern=r"^https?://[A-Za-z0-9._:\[\]-]+([/?#][!-~]*)?$",
        description="A public address of http or https, without user name or password.",
    )


class ScrapedPage(BaseModel):
    """One page. ``page_status`` is what the page's own server answered: 404 is a page that is gone, not a failed call."""

    url: str
    page_status: int | None
    title: str | None
    language: str | None
    description: str | None
    markdown: str
    note: str | None


def scrape_page(account: Account, prices: ResearchPrices) -> Tool:
    """The tool, over a Firecrawl account."""

    @research_tool(
        "research.scrape_page",
        "Read one web page as Markdown. Look at page_status: a page that is gone answers too.",
        cost_bound=prices.firecrawl_credit * firecrawl.MAX_CREDITS,
        retries=account.retries,
        egress="open",
    )
    async def handler(ctx: CallContext, args: PageAddress) -> ScrapedPage:
        page = await firecrawl.scrape(ctx, account, url=args.url)
        about = page.metadata
        return ScrapedPage(
            url=about.url or args.url,
            page_status=about.statusCode,
            title=_one(about.title),
            language=_one(about.language),
            description=_one(about.description),
            markdown=page.markdown or "",
            note=about.error or page.warning,
        )

    return handler


def _one(value: str | list[str] | None) -> str | None:
    """A page with two titles has its meta tags as a list."""
    return " ".join(value) or None if isinstance(value, list) else value
