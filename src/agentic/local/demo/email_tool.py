"""``email.send`` over the mail provider's API (Nylas v3): the declaration, the request, and what it returns.

What a status means is `email_answers`'s. The variant without a key shows what a provider that has none costs: nobody may
repeat a send whose worker died, so an operator must look.
"""

from typing import Any

from pydantic import BaseModel, Field

from agentic.contract.canonical import canonical
from agentic.local.demo.email_answers import EmailSent, read_answer
from agentic.local.demo.settings import MailAccount
from agentic.services.tools.context import CallContext
from agentic.services.tools.declarations import Tool, vendor_tool
from agentic.services.tools.handlers.http import GovernedClient

MAIL = "mail"
"""Provider key of the account it sends from."""
VENDOR_KEY_TTL_S = 3600
RUN_ID = "run_id"
"""The metadata field that tells an email's run."""
_ADDRESS = r"^[^@\s<>,;]+@[^@\s<>,;]+\.[^@\s<>,;.]+$"


class Email(BaseModel):
    """Arguments of ``email.send``."""

    to: str = Field(max_length=320, pattern=_ADDRESS, description="The one recipient's address.")
    subject: str = Field(min_length=1, max_length=200)
    body: str = Field(min_length=1, max_length=10_000, description="Plain text.")


def email_tool(mail: MailAccount, *, vendor_key: bool, timeout_s: float) -> Tool:
    """The tool.

    Args:
        mail: the account it sends from.
        vendor_key: ``True``: conditional on the provider's key, which is remembered for an hour. ``False``: without one.
        timeout_s: how long one send may take.
    """

    @vendor_tool(
        "email.send",
        "Send one email to one person. A person approves it first; it cannot be taken back.",
        side_effects="send",
        risk="high",
        repeatable=False,
        connection=MAIL,
        watermark="at_transport",
        approval_preview=True,
        preview=preview,
        timeout_s=timeout_s,
        **_repeats(vendor_key),
    )
    async def send(ctx: CallContext, args: Email) -> EmailSent:
        headers = {"content-type": "application/json"}
        if vendor_key and ctx.idempotency_key is not None:
            headers["idempotency-key"] = ctx.idempotency_key
        async with GovernedClient(
            origin=mail.url,
            headers=headers,
            auth=ctx.connection.authorize,
            before_first_byte=ctx.before_first_byte,
            deadline=ctx.deadline,
            clock=ctx.clock,
        ) as client:
            reply = await client.post_bytes(f"/v3/grants/{mail.grant}/messages/send", request_body(ctx, args))
        sent = read_answer(reply, to=args.to, now=ctx.clock.now())
        ctx.report_usage(1, "email", provider="mail")
        return sent

    return send


async def preview(ctx: CallContext, args: Email) -> str:
    """The line a person reads first."""
    return f"Email to {args.to}: {args.subject}"


def request_body(ctx: CallContext, args: Email) -> bytes:
    """The request, byte for byte the same for the same call: a key with other bytes is refused (J7)."""
    return canonical(
        {
            "to": [{"email": args.to}],
            "subject": args.subject,
            "body": args.body,
            "is_plaintext": True,
            "metadata": {RUN_ID: str(ctx.run_id)},
        }
    )


def _repeats(vendor_key: bool) -> dict[str, Any]:
    if vendor_key:
        return {"idempotency": "conditional", "vendor_key_ttl_s": VENDOR_KEY_TTL_S}
    return {
        "idempotency": "non_idempotent",
        "may_repeat_because": "the provider offers no key and no search of what was sent; an operator settles unknown outcomes",
    }
