"""``email.send``: one plain-text email from a mailbox of the organization, at most once (J7).

The key of the call goes to Nylas with the same bytes on every attempt, for as long as Nylas remembers it. Plain text alone, so that
what a person approved is what the recipient reads: no hidden text, no picture that reports back.
"""

import asyncio
from collections.abc import Sequence
from typing import Annotated

from pydantic import BaseModel, Field

from agentic.contract.canonical import canonical
from agentic.contract.errors import ProgramFault
from agentic.services.tools.context import CallContext
from agentic.services.tools.declarations import Tool, vendor_tool
from agentic.services.tools.handlers.email.arguments import Address, EmailId, Line, Mailbox
from agentic.services.tools.handlers.email.nylas import NYLAS, messages_path
from agentic.services.tools.handlers.email.sending import SentEmail, sent
from agentic.services.tools.handlers.http import GovernedClient
from agentic.services.tools.previewing import MAX_PREVIEW_BYTES

VENDOR_KEY_TTL_S = 3300
"""Nylas remembers a key for an hour; five minutes of it are left to clocks that run differently."""
TIMEOUT_S = 90.0
ATTEMPT_S = 40.0
"""Of one request, so that one that goes silent leaves time for a repeat under its key."""
MAX_RECIPIENTS = 10
RECIPIENT_IS_NEW, NEW_RECIPIENTS = "recipient_is_new", "new_recipients"
"""Facts that rules may ask about every send: whether anybody, and how many, never had an email from the organization."""
_LOOKING_S = 1.0
"""Seconds that a preview waits for the number of new recipients, at most half of what it has."""
_SHOWN_MAILBOX_BYTES = 80
_SHOWN_ADDRESSES_BYTES = 200
_SHOWN_SUBJECT_BYTES = 160


class Email(BaseModel):
    """Arguments of ``email.send``."""

    to: list[Address] = Field(min_length=1, max_length=MAX_RECIPIENTS, description="Bare addresses, without names.")
    cc: list[Address] = Field(default=[], max_length=MAX_RECIPIENTS)
    bcc: list[Address] = Field(default=[], max_length=MAX_RECIPIENTS)
    subject: Line
    body: Annotated[str, Field(min_length=1, max_length=20_000, pattern=r"^[^\x00-\x08\x0b\x0c\x0e-\x1f\x7f]+$")] = (
        Field(description="Plain text.")
    )
    reply_to_message_id: EmailId | None = Field(
        default=None, description="The id of the email it answers, from email.search or email.read."
    )
    connection_id: Mailbox = None

    @property
    def recipients(self) -> list[str]:
        """Everybody who gets it, once each, as first written."""
        first: dict[str, str] = {}
        for address in (*self.to, *self.cc, *self.bcc):
            first.setdefault(address.lower(), address)
        return list(first.values())


def send_email(
    origin: str, *, facts: Sequence[str] = (), timeout_s: float = TIMEOUT_S, attempt_s: float = ATTEMPT_S
) -> Tool:
    """The tool.

    Args:
        origin: where Nylas is reached.
        facts: what rules may ask about a send beside its arguments and whether it goes to somebody new.
        timeout_s: seconds of one call, repeats among them.
        attempt_s: seconds of one request.
    """

    @vendor_tool(
        "email.send",
        "Send one plain-text email from a mailbox of the organization. It cannot be taken back.",
        side_effects="send",
        idempotency="conditional",
        vendor_key_ttl_s=VENDOR_KEY_TTL_S,
        risk="medium",
        repeatable=False,
        connection=NYLAS,
        watermark="at_transport",
        approval_preview=True,
        preview=preview,
        policy_facts=tuple(dict.fromkeys((RECIPIENT_IS_NEW, NEW_RECIPIENTS, *facts))),
        timeout_s=timeout_s,
    )
    async def handler(ctx: CallContext, args: Email) -> SentEmail:
        if ctx.idempotency_key is None:
            raise ProgramFault("email.send runs under a claim, whose key Nylas deduplicates by; this call has none")
        async with GovernedClient(
            origin=origin,
            headers={"content-type": "application/json", "accept": "application/json"},
            auth=ctx.connection.authorize,
            before_first_byte=ctx.before_first_byte,
            deadline=min(ctx.deadline, ctx.clock.monotonic() + attempt_s),
            clock=ctx.clock,
        ) as client:
            reply = await client.post_bytes(
                f"{messages_path(ctx)}/send", request_body(args), headers={"idempotency-key": ctx.idempotency_key}
            )
        if reply.status == 401:
            raise await ctx.connection.rejected()
        answer = sent(
            reply,
            recipients=len(args.recipients),
            answers_another=args.reply_to_message_id is not None,
            now=ctx.clock.now(),
        )
        ctx.report_usage(1, "email", provider=NYLAS)
        return answer

    return handler


def request_body(args: Email) -> bytes:
    """The request, of the arguments alone: a key that comes with other bytes is refused (J7)."""
    people = (("to", args.to), ("cc", args.cc), ("bcc", args.bcc))
    return canonical(
        {
            **{name: [{"email": address} for address in listed] for name, listed in people if listed},
            "subject": args.subject,
            "body": args.body,
            "is_plaintext": True,
            **({"reply_to_message_id": args.reply_to_message_id} if args.reply_to_message_id is not None else {}),
        }
    )


async def preview(ctx: CallContext, args: Email) -> str:
    """The line a person reads first: from which mailbox, to how many, how many of them are new, who they are, and the subject.

    Addresses and subject go as far as the line does; what is left out is said.
    """
    people = args.recipients
    count = _counted(len(people), await _new(ctx))
    mailbox = _clipped(ctx.connection.name, _SHOWN_MAILBOX_BYTES)
    shown: list[str] = []
    size = 0
    for address in people:
        size += len(address) + 2
        if shown and size > _SHOWN_ADDRESSES_BYTES:
            break
        shown.append(address)
    more = f" and {len(people) - len(shown)} more" if len(shown) < len(people) else ""
    answering = ", as an answer" if args.reply_to_message_id is not None else ""
    line = f"one message from {mailbox} to {count}{answering}: {', '.join(shown)}{more}; subject: "
    return line + _clipped(args.subject, min(_SHOWN_SUBJECT_BYTES, MAX_PREVIEW_BYTES - len(line.encode())))


async def _new(ctx: CallContext) -> int | None:
    """How many recipients are new; ``None`` when that cannot be told soon, and the line does without it (A6)."""
    try:
        async with asyncio.timeout(min(_LOOKING_S, ctx.remaining_s / 2)):
            found = await ctx.fact(NEW_RECIPIENTS)
    except TimeoutError:
        return None
    return found if isinstance(found, int) else None


def _counted(people: int, new: int | None) -> str:
    recipients = "recipient" if people == 1 else "recipients"
    if new == people:
        return f"{people} new {recipients}"
    return f"{people} {recipients}" + (f" ({new} of them new)" if new else "")


def _clipped(text: str, size: int) -> str:
    """The text in at most so many bytes, its cut marked."""
    whole = text.encode()
    if len(whole) <= size:
        return text
    return whole[: size - len("…".encode())].decode(errors="ignore") + "…"
