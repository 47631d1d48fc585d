"""``research.search_people``: persons, by Exa. Those the organization knows already are the CRM's to find."""

from pydantic import BaseModel, Field

from agentic.services.tools.context import CallContext
from agentic.services.tools.declarations import Tool
from agentic.services.tools.handlers.research import exa
from agentic.services.tools.handlers.research.arguments import MAX_RESULTS, Limit
from agentic.services.tools.handlers.research.declaring import research_tool
from agentic.services.tools.handlers.research.people import company_of, current_work, name_of
from agentic.services.tools.handlers.research.prices import ResearchPrices
from agentic.services.tools.handlers.research.vendor import Account


class PeopleQuery(BaseModel):
    """Arguments of ``research.search_people``."""

    query: str = Field(
        min_length=1, max_length=1_000, description="Whom to find, such as 'heads of platform in Bergen'."
    )
    limit: Limit = MAX_RESULTS


class PersonFound(BaseModel):
    """One person."""

    id: str
    name: str | None
    title: str | None
    company: str | None
    location: str | None
    url: str
    excerpts: list[str]


def search_people(account: Account, prices: ResearchPrices) -> Tool:
    """The tool, over an Exa account."""

    @research_tool(
        "research.search_people",
        "Search the web for people by who they are and what they do. An empty list when there are none.",
        cost_bound=prices.exa_request,
        retries=account.retries,
        max_results=MAX_RESULTS,
        item_kind="person_found",
    )
    async def handler(ctx: CallContext, args: PeopleQuery) -> list[PersonFound]:
        found = await exa.search(ctx, account, prices, query=args.query, limit=args.limit, category="people")
        return [_person(each) for each in found]

    return handler


def _person(result: exa.Result) -> PersonFound:
    person = result.person
    work = current_work(person)
    return PersonFound(
        id=result.id,
        name=name_of(result),
        title=work.title if work is not None else None,
        company=company_of(work),
        location=person.location if person is not None else None,
        url=result.url,
        excerpts=result.highlights or [],
    )
