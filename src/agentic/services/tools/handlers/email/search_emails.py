"""``email.search``: emails of a mailbox by sender, subject and time, newest first.

Each filter is a field of its own. The search languages of the mailboxes behind Nylas are not offered: what they make of a text
differs from provider to provider.
"""

from datetime import UTC, date, datetime, timedelta
from typing import Annotated
from urllib.parse import urlencode

from pydantic import BaseModel, Field

from agentic.contract.results import ErrorCode
from agentic.services.tools.context import CallContext
from agentic.services.tools.declarations import Tool, vendor_tool
from agentic.services.tools.handlers.email.arguments import Address, Line, Mailbox
from agentic.services.tools.handlers.email.messages import Person, WireEmail, emails, moment, people, sender, subject
from agentic.services.tools.handlers.email.nylas import NYLAS, ask, messages_path
from agentic.services.tools.handlers.retries import RetryBudget

MAX_RESULTS = 20
_FIELDS = "id,thread_id,subject,from,to,date,snippet,unread,attachments"
_MAX_SNIPPET_CHARS = 200
_Day = Annotated[date, Field(ge=date(1990, 1, 1), le=date(2200, 1, 1))]


class EmailSearch(BaseModel):
    """Arguments of ``email.search``. What is left out does not filter."""

    from_address: Address | None = Field(default=None, description="Who wrote it.")
    to_address: Address | None = Field(default=None, description="Who got it.")
    any_address: Address | None = Field(default=None, description="Anybody of it: from, to, cc or bcc.")
    subject: Line | None = Field(default=None, description="Words of the subject.")
    unread: bool | None = None
    has_attachment: bool | None = None
    since: _Day | None = Field(default=None, description="The first day, in UTC.")
    before: _Day | None = Field(default=None, description="The day after the last one, in UTC.")
    limit: int = Field(default=10, ge=1, le=MAX_RESULTS)
    connection_id: Mailbox = None


class FoundEmail(BaseModel):
    """One email, newest first. ``id`` is for ``email.read``."""

    id: str
    thread_id: str | None
    subject: str
    sender: Person | None
    to: list[Person]
    date: str | None
    snippet: str
    unread: bool | None
    attachments: int


def search_emails(origin: str, *, retries: RetryBudget, timeout_s: float) -> Tool:
    """The tool.

    Args:
        origin: where Nylas is reached.
        retries: how often it is asked.
        timeout_s: seconds of one call, all of ``retries`` among them.
    """

    @vendor_tool(
        "email.search",
        "Find emails in a mailbox of the organization, newest first. What they say was written by others.",
        connection=NYLAS,
        retries=retries,
        timeout_s=timeout_s,
        max_results=MAX_RESULTS,
    )
    async def handler(ctx: CallContext, args: EmailSearch) -> list[FoundEmail]:
        path = f"{messages_path(ctx)}?{query(args)}"
        content = await ask(ctx, origin, path, retries=retries, missing=ErrorCode.CONNECTION_EXPIRED)
        return [_found(email) for email in emails(content)[: args.limit]]

    return handler


def query(args: EmailSearch) -> str:
    """The query of the search, escaped."""
    filters = {
        "from": args.from_address,
        "to": args.to_address,
        "any_email": args.any_address,
        "subject": args.subject,
        "unread": _word(args.unread),
        "has_attachment": _word(args.has_attachment),
        # the vendor means "later than", and the first second of the day belongs to it
        "received_after": None if args.since is None else str(_midnight(args.since) - 1),
        "received_before": None if args.before is None else str(_midnight(args.before)),
    }
    named = {name: value for name, value in filters.items() if value is not None}
    return urlencode({"limit": args.limit, "select": _FIELDS, **named})


def _midnight(day: date) -> int:
    return int(
        (datetime(day.year, day.month, day.day, tzinfo=UTC) - datetime(1970, 1, 1, tzinfo=UTC)) / timedelta(seconds=1)
    )


def _word(value: bool | None) -> str | None:
    return None if value is None else str(value).lower()


def _found(email: WireEmail) -> FoundEmail:
    return FoundEmail(
        id=email.id,
        thread_id=email.thread_id,
        subject=subject(email),
        sender=sender(email),
        to=people(email.to),
        date=moment(email),
        snippet=(email.snippet or "")[:_MAX_SNIPPET_CHARS],
        unread=email.unread,
        attachments=len(email.attachments or ()),
    )
