"""``research.enrich_company``: what Hunter knows of a company by its domain."""

from pydantic import BaseModel, Field

from agentic.services.tools.context import CallContext
from agentic.services.tools.declarations import Tool
from agentic.services.tools.handlers.research import hunter
from agentic.services.tools.handlers.research.arguments import Domain
from agentic.services.tools.handlers.research.declaring import research_tool
from agentic.services.tools.handlers.research.prices import ResearchPrices
from agentic.services.tools.handlers.research.vendor import Account

_MAX_WORDS = 30


class CompanyDomain(BaseModel):
    """Arguments of ``research.enrich_company``."""

    domain: Domain = Field(description="Such as nordlys.example.")


class CompanyProfile(BaseModel):
    """What is known of a company; nothing but its domain when ``found`` is false."""

    found: bool
    domain: str
    name: str | None = None
    legal_name: str | None = None
    description: str | None = None
    founded_year: int | None = None
    sector: str | None = None
    industry: str | None = None
    employees: str | None = None
    estimated_revenue: str | None = None
    location: str | None = None
    city: str | None = None
    country: str | None = None
    linkedin: str | None = None
    tags: list[str] = []
    technologies: list[str] = []


def enrich_company(account: Account, prices: ResearchPrices) -> Tool:
    """The tool, over a Hunter account."""

    @research_tool(
        "research.enrich_company",
        "Look up a company by its domain: what it does, how large it is, where it is. found is false when nothing is known.",
        cost_bound=prices.hunter_credit * prices.hunter_enrichment_credits,
        retries=account.retries,
    )
    async def handler(ctx: CallContext, args: CompanyDomain) -> CompanyProfile:
        known = await hunter.company(ctx, account, prices, domain=args.domain)
        return CompanyProfile(found=False, domain=args.domain) if known is None else _profile(args.domain, known)

    return handler


def _profile(asked: str, known: hunter.Company) -> CompanyProfile:
    category, geo, metrics = known.category, known.geo, known.metrics
    employees = metrics.employees if metrics is not None else None
    return CompanyProfile(
        found=True,
        domain=known.domain or asked,
        name=known.name,
        legal_name=known.legalName,
        description=known.description,
        founded_year=known.foundedYear,
        sector=category.sector if category is not None else None,
        industry=category.industry if category is not None else None,
        employees=None if employees is None else str(employees),
        estimated_revenue=metrics.estimatedAnnualRevenue if metrics is not None else None,
        location=known.location,
        city=geo.city if geo is not None else None,
        country=geo.country if geo is not None else None,
        linkedin=known.linkedin.handle if known.linkedin is not None else None,
        tags=(known.tags or [])[:_MAX_WORDS],
        technologies=(known.tech or [])[:_MAX_WORDS],
    )
