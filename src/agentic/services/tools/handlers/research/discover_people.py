"""``research.discover_people``: candidates at one company, by one provider, because one call is one line of usage.

Who wants more coverage makes one call for each company and provider; a workflow fans them out.
"""

from enum import StrEnum
from typing import assert_never

from pydantic import BaseModel, Field

from agentic.services.tools.context import CallContext
from agentic.services.tools.declarations import Tool
from agentic.services.tools.handlers.errors import UpstreamUnavailableError
from agentic.services.tools.handlers.research import exa, hunter
from agentic.services.tools.handlers.research.arguments import MAX_RESULTS, Domain, Limit
from agentic.services.tools.handlers.research.declaring import research_tool
from agentic.services.tools.handlers.research.people import company_of, current_work, name_of
from agentic.services.tools.handlers.research.persona import Persona, as_filters, as_sentence
from agentic.services.tools.handlers.research.prices import ResearchPrices
from agentic.services.tools.handlers.research.vendor import Account


class Provider(StrEnum):
    """Who is asked."""

    EXA = "exa"
    """Takes the whole persona."""
    HUNTER = "hunter"
    """Takes seniority and function, and knows people with an address at the domain."""


class Discovery(BaseModel):
    """Arguments of ``research.discover_people``."""

    provider: Provider = Field(
        description="exa reads the whole persona; hunter reads seniority and function alone. One of them a call."
    )
    company: str = Field(min_length=1, max_length=200, description="The company's name.")
    domain: Domain = Field(description="The company's domain, such as nordlys.example.")
    persona: Persona = Field(default_factory=Persona)
    limit: Limit = MAX_RESULTS


class Candidate(BaseModel):
    """One candidate, the same whoever found it."""

    id: str | None
    name: str
    title: str | None
    company: str | None
    location: str | None
    profile_url: str | None
    provider: Provider


def discover_people(exa_account: Account | None, hunter_account: Account | None, prices: ResearchPrices) -> Tool:
    """The tool, over an account with at least one of the two."""
    accounts = [each for each in (exa_account, hunter_account) if each is not None]

    @research_tool(
        "research.discover_people",
        "Find people at one company who fit a persona, with one provider. An empty list when there are none.",
        cost_bound=max(prices.exa_request, prices.hunter_credit),
        retries=max((each.retries for each in accounts), key=lambda budget: budget.total_s),
        max_results=MAX_RESULTS,
        item_kind="candidate",
    )
    async def handler(ctx: CallContext, args: Discovery) -> list[Candidate]:
        match args.provider:
            case Provider.EXA:
                return await _by_exa(ctx, _configured(exa_account, args.provider), prices, args)
            case Provider.HUNTER:
                return await _by_hunter(ctx, _configured(hunter_account, args.provider), args)
            case _ as never:
                assert_never(never)

    return handler


def _configured(account: Account | None, provider: Provider) -> Account:
    if account is None:
        raise UpstreamUnavailableError(f"this deployment has no account with {provider}; nothing was asked")
    return account


async def _by_exa(ctx: CallContext, account: Account, prices: ResearchPrices, args: Discovery) -> list[Candidate]:
    query = as_sentence(args.persona, f"{args.company} ({args.domain})")
    found = await exa.search(ctx, account, prices, query=query, limit=args.limit, category="people")
    candidates = []
    for each in found:
        name, work = name_of(each), current_work(each.person)
        if name is None:
            continue
        candidates.append(
            Candidate(
                id=each.id,
                name=name,
                title=work.title if work is not None else None,
                company=company_of(work),
                location=each.person.location if each.person is not None else None,
                profile_url=each.url,
                provider=Provider.EXA,
            )
        )
    return candidates


async def _by_hunter(ctx: CallContext, account: Account, args: Discovery) -> list[Candidate]:
    query = {"domain": args.domain, "type": "personal", "limit": str(args.limit), **as_filters(args.persona)}
    found = await hunter.domain_search(ctx, account, query=query)
    if found is None:
        return []
    return [
        Candidate(
            id=None,
            name=name,
            title=address.position,
            company=found.organization or args.company,
            location=None,
            profile_url=address.linkedin,
            provider=Provider.HUNTER,
        )
        for name, address in hunter.named(found)
    ]
