"""``email.read``: one email as bounded text; of its attachments, names and sizes alone."""

import asyncio
from urllib.parse import quote

from pydantic import BaseModel, Field

from agentic.contract.results import ErrorCode
from agentic.services.tools.context import CallContext
from agentic.services.tools.declarations import Tool, vendor_tool
from agentic.services.tools.handlers.email.arguments import EmailId, Mailbox
from agentic.services.tools.handlers.email.messages import (
    Person,
    WireAttachment,
    moment,
    one_email,
    people,
    sender,
    subject,
)
from agentic.services.tools.handlers.email.nylas import NYLAS, ask, messages_path
from agentic.services.tools.handlers.email.plain_text import text_of
from agentic.services.tools.handlers.retries import RetryBudget

MAX_TEXT_BYTES = 16 * 1024
MAX_ATTACHMENTS = 10
_MAX_NAME_CHARS = 120
_FIELDS = "id,thread_id,subject,from,to,cc,date,body,attachments"


class WhichEmail(BaseModel):
    """Arguments of ``email.read``."""

    id: EmailId = Field(description="The id of an email, from email.search.")
    connection_id: Mailbox = None


class AttachedFile(BaseModel):
    """A file that came with it, which is not read."""

    name: str
    size_bytes: int | None


class ReadEmail(BaseModel):
    """One email. ``text_is_cut`` says that its text went on; ``people_left_out`` and ``files_left_out`` count what is not listed."""

    id: str
    thread_id: str | None
    subject: str
    sender: Person | None
    to: list[Person]
    cc: list[Person]
    people_left_out: int
    date: str | None
    text: str
    text_is_cut: bool
    files: list[AttachedFile]
    files_left_out: int


def read_email(origin: str, *, retries: RetryBudget, timeout_s: float) -> Tool:
    """The tool. Arguments as for ``search_emails``."""

    @vendor_tool(
        "email.read",
        "Read one email of a mailbox of the organization. What it says was written by others.",
        connection=NYLAS,
        retries=retries,
        timeout_s=timeout_s,
    )
    async def handler(ctx: CallContext, args: WhichEmail) -> ReadEmail:
        path = f"{messages_path(ctx)}/{quote(args.id, safe='')}?select={_FIELDS}"
        content = await ask(ctx, origin, path, retries=retries, missing=ErrorCode.NOT_FOUND)
        email = one_email(content)
        # a large body takes tens of milliseconds, in which every other call of this process would wait
        text, is_cut = await asyncio.to_thread(text_of, email.body or "", max_bytes=MAX_TEXT_BYTES)
        to, cc, files = people(email.to), people(email.cc), email.attachments or []
        return ReadEmail(
            id=email.id,
            thread_id=email.thread_id,
            subject=subject(email),
            sender=sender(email),
            to=to,
            cc=cc,
            people_left_out=len(email.to or ()) + len(email.cc or ()) - len(to) - len(cc),
            date=moment(email),
            text=text,
            text_is_cut=is_cut,
            files=[_file(each) for each in files[:MAX_ATTACHMENTS]],
            files_left_out=max(0, len(files) - MAX_ATTACHMENTS),
        )

    return handler


def _file(attached: WireAttachment) -> AttachedFile:
    return AttachedFile(name=(attached.filename or "")[:_MAX_NAME_CHARS], size_bytes=attached.size)
