"""A workflow: a lead arrives, two reads run side by side, and what they found decides whether it gets an email or a note.

Try it with ``agentic dev --app examples.lead_workflow:app``, and send an event ``leads/arrived`` to the function server that it names,
with ``organization_id``, ``user_id``, ``company`` and ``email`` in its data. A person is asked before the email leaves.
"""

from typing import Any
from uuid import UUID

import inngest
from pydantic import BaseModel, JsonValue

from agentic import App, CallContext, Principal, RunCeilings, Trust, internal_tool, vendor_tool
from agentic.runtime.workflow import (
    NodeFailed,
    Workflow,
    WorkflowContext,
    WorkflowPartial,
    Workflows,
    tool_step,
)
from agentic.services.connections.fixed import FixedConnections

WORTH_AN_EMAIL = 50


class Company(BaseModel):
    """Which company."""

    company: str


class Size(BaseModel):
    """How large it is."""

    employees: int


class Account(BaseModel):
    """What the own records say about it."""

    known: bool


class Note(BaseModel):
    """A line for the records."""

    company: str
    text: str


class Letter(BaseModel):
    """An email."""

    to: str
    subject: str
    body: str


class Done(BaseModel):
    """Where it is kept."""

    id: str


@vendor_tool("research.company_size", "Looks a company's size up.", side_effects="read", connection="research")
async def company_size(ctx: CallContext, args: Company) -> Size:
    """Stands in for a provider."""
    return Size(employees=len(args.company) * 10)


@internal_tool("crm.find_account", "Finds a company in the own records.")
async def find_account(ctx: CallContext, args: Company) -> Account:
    """Stands in for the records."""
    return Account(known=args.company.startswith("Known"))


@internal_tool("crm.save_note", "Saves a note.", side_effects="write", risk="low", repeatable=False)
async def save_note(ctx: CallContext, args: Note) -> Done:
    """Stands in for the records."""
    return Done(id=f"note-{args.company}")


@vendor_tool(
    "email.send",
    "Sends an email.",
    side_effects="send",
    connection="email",
    idempotency="conditional",
    vendor_key_ttl_s=3600,
    repeatable=False,
)
async def send_email(ctx: CallContext, args: Letter) -> Done:
    """Stands in for a provider, which would be told ``ctx.idempotency_key``."""
    return Done(id=f"email-{args.to}")


def acts_for(event: inngest.Event) -> Principal:
    """Who a run acts for: as the code that sent the event wrote it."""
    organization_id, user_id = event.data["organization_id"], event.data.get("user_id")
    return Principal(
        organization_id=UUID(str(organization_id)), user_id=UUID(str(user_id)) if user_id is not None else None
    )


LEADS = Workflow(
    name="leads",
    tools=("research.company_size", "crm.find_account", "crm.save_note", "email.send"),
    acts_for=acts_for,
    trust=Trust.EXTERNAL,  # a stranger filled the form
    ceilings=RunCeilings(max_tool_calls=20),
)


async def welcome(ctx: WorkflowContext) -> JsonValue:
    """The body: called from the top at every step, so between the steps it only computes."""
    company, email = str(ctx.event.data["company"]), str(ctx.event.data["email"])
    size, account = await ctx.side_by_side(
        lambda: tool_step(ctx, "size", "research.company_size", {"company": company}),
        lambda: tool_step(ctx, "account", "crm.find_account", {"company": company}),
    )
    if size.data["employees"] < WORTH_AN_EMAIL or account.data["known"]:
        return await _noted(ctx, company, "not written to")
    letter = Letter(to=email, subject="Welcome", body=f"Hello {company}, shall we talk?")
    sent = await tool_step(ctx, "email", "email.send", letter, continue_on_error=True)
    return await _noted(ctx, company, "written to" if sent.error is None else f"not written to: {sent.error.code}")


async def _noted(ctx: WorkflowContext, company: str, text: str) -> JsonValue:
    try:
        await tool_step(ctx, "note", "crm.save_note", {"company": company, "text": text})
    except (NodeFailed, WorkflowPartial) as lost:
        return {"company": company, "outcome": text, "noted": lost.reason}
    return {"company": company, "outcome": text, "noted": True}


def functions(client: inngest.Inngest, workflows: Workflows) -> list[inngest.Function[Any]]:
    """The function around the body, declared as any other of yours."""

    @client.create_function(
        fn_id="leads",
        trigger=inngest.TriggerEvent(event="leads/arrived"),
        retries=4,
        on_failure=workflows.on_failure(LEADS),
    )
    async def leads(ctx: inngest.Context) -> JsonValue:
        return await workflows.run(ctx, LEADS, welcome)

    return [leads]


# as nothing outside is called, any account will do; a deployment leaves this out and uses its vault (docs/connections.md)
app = App(
    tools=(company_size, find_account, save_note, send_email), functions=functions, connections=FixedConnections()
)
