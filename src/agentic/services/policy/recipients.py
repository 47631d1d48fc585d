"""The facts ``recipient_is_new`` and ``new_recipients``: whether, and how many, people of an email never had one from this organization.

New is who no completed ``email.send`` of the organization has gone to. What is uncertain, refused or still on its way counts for
nothing, and what retention removed is forgotten: a recipient is rather asked about once more than taken for known.
"""

from collections.abc import Awaitable, Callable, Collection, Sequence
from uuid import UUID

from pydantic import BaseModel

from agentic.services.policy.facts import Fact
from agentic.services.tools.context import CallContext
from agentic.services.tools.handlers.email import NEW_RECIPIENTS, RECIPIENT_IS_NEW, Email

WrittenTo = Callable[[UUID, Sequence[str]], Awaitable[Collection[str]]]
"""Which of these addresses, written as they are given, an email of the organization has gone to."""


def recipient_facts(written_to: WrittenTo) -> list[Fact]:
    """Both facts, of calls whose arguments are an ``Email``; of any other they are no answer."""

    async def new_recipients(ctx: CallContext, args: BaseModel) -> int:
        if not isinstance(args, Email):
            raise TypeError(f"{ctx.tool} takes no Email")
        return len(set(args.recipients) - set(await written_to(ctx.organization_id, args.recipients)))

    async def recipient_is_new(ctx: CallContext, args: BaseModel) -> bool:
        return await new_recipients(ctx, args) > 0

    return [
        Fact(name=RECIPIENT_IS_NEW, type="bool", resolve=recipient_is_new),
        Fact(name=NEW_RECIPIENTS, type="number", resolve=new_recipients),
    ]
