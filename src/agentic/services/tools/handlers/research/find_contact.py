"""``research.find_contact``: the one address Hunter has for a person, never one that this package put together."""

from pydantic import BaseModel, Field

from agentic.services.tools.context import CallContext
from agentic.services.tools.declarations import Tool
from agentic.services.tools.handlers.research import hunter
from agentic.services.tools.handlers.research.arguments import Domain
from agentic.services.tools.handlers.research.declaring import research_tool
from agentic.services.tools.handlers.research.prices import ResearchPrices
from agentic.services.tools.handlers.research.vendor import Account
from agentic.services.tools.handlers.research.verification import Verification, is_role, verification


class ContactQuery(BaseModel):
    """Arguments of ``research.find_contact``."""

    first_name: str = Field(min_length=1, max_length=120)
    last_name: str = Field(min_length=1, max_length=120)
    domain: Domain = Field(description="The domain of the company the person works for.")


class Contact(BaseModel):
    """The person, with or without an address."""

    first_name: str
    last_name: str
    domain: str
    email: str | None
    verification: Verification
    provider_status: str | None
    """The provider's own word for it."""
    checked_on: str | None
    role_mailbox: bool
    """The address is a function's, such as ``info@``."""
    position: str | None
    profile_url: str | None


def find_contact(account: Account, prices: ResearchPrices) -> Tool:
    """The tool, over a Hunter account."""

    @research_tool(
        "research.find_contact",
        "Find the email address of one person at one company. Look at verification before you rely on it; not_found is an answer.",
        cost_bound=prices.hunter_credit * prices.hunter_finder_credits,
        retries=account.retries,
    )
    async def handler(ctx: CallContext, args: ContactQuery) -> Contact:
        found = await hunter.find_email(
            ctx, account, prices, first_name=args.first_name, last_name=args.last_name, domain=args.domain
        )
        return _contact(args, found)

    return handler


def _contact(args: ContactQuery, found: hunter.Finding | None) -> Contact:
    if found is None or found.email is None:
        state, status, checked_on = Verification.NOT_FOUND, None, None
    else:
        status = found.verification.status if found.verification is not None else None
        checked_on = found.verification.date if found.verification is not None else None
        state = verification(status, accept_all=found.accept_all)
    email = found.email if found is not None else None
    return Contact(
        first_name=args.first_name,
        last_name=args.last_name,
        domain=args.domain,
        email=email,
        verification=state,
        provider_status=status,
        checked_on=checked_on,
        role_mailbox=email is not None and is_role(email),
        position=found.position if found is not None else None,
        profile_url=found.linkedin_url if found is not None else None,
    )
