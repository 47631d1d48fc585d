"""The email tools over the mail provider's stand-in, through the real invoker."""

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any
from uuid import UUID, uuid4

from agentic.contract.results import ErrorCode
from agentic.local.providers.mail import MailServer
from agentic.runtime.agent.script import Turn
from agentic.services.policy import Fact
from agentic.services.tools.connections import Account, ConnectionPort, Presented, Unconnected
from agentic.services.tools.declarations import Tool
from agentic.services.tools.handlers.email import NYLAS, email_tools
from agentic.services.tools.handlers.errors import ConnectionUnusable, DefiniteRefusal
from agentic.services.tools.handlers.retries import RetryBudget
from agentic.testing import Call, Calls, Harness, Say, harness
from core_world import execute, journal

KEY = "nylas-key-of-nobody"
GRANT = "11111111-1111-4111-8111-111111111111"
LETTER: dict[str, Any] = {"to": ["per@fjord.example"], "subject": "Hello", "body": "Hi Per"}
AT_ONCE = RetryBudget(attempts=2, attempt_timeout_s=20, backoff_s=0)


class Mailboxes:
    """Accounts of every organization, each with its facts; implements ``ConnectionPort``."""

    def __init__(self, *facts: Mapping[str, str]) -> None:
        self.accounts = [
            Account(id=uuid4(), provider=NYLAS, label=f"mailbox {number}", shown=shown, credential=_Key())
            for number, shown in enumerate(facts)
        ]

    async def resolve(
        self, *, organization_id: UUID, provider: str, connection_id: UUID | None
    ) -> Account | Unconnected:
        if connection_id is None and len(self.accounts) > 1:
            choices = tuple(f"{account.id} {account.label}" for account in self.accounts)
            return Unconnected(code=ErrorCode.CONNECTION_AMBIGUOUS, choices=choices)
        for account in self.accounts:
            if connection_id in (None, account.id):
                return account
        return Unconnected(code=ErrorCode.NOT_FOUND)


class _Key:
    secrets = (KEY,)

    async def present(self) -> Presented:
        return Presented(header="authorization", value=f"Bearer {KEY}", bare=KEY)

    async def rejected(self) -> DefiniteRefusal:
        return ConnectionUnusable("the key is not accepted")


def tools(mail: MailServer, **said: Any) -> list[Tool]:
    """The email tools; a busy provider is asked again at once."""
    return email_tools(origin=mail.url, reads=AT_ONCE, **said)


@asynccontextmanager
async def opened(
    database: str,
    mail: MailServer,
    *calls: tuple[str, Mapping[str, Any]],
    connections: ConnectionPort | Mapping[str, str] | Any = None,
    claim_grace_s: float = 1.0,
    resolvers: Sequence[Fact] = (),
    **said: Any,
) -> AsyncIterator[Harness]:
    """A deployment whose model makes these calls, one a turn."""
    script: list[Turn] = [*(Calls([Call(name, dict(arguments))]) for name, arguments in calls), Say("Done.")]
    async with harness(
        tools=tools(mail, **said),
        script=script,
        database_url=database,
        connections=connections or {NYLAS: KEY},
        claim_grace_s=claim_grace_s,
        facts=resolvers,
    ) as h:
        yield h


@dataclass(frozen=True, kw_only=True)
class Told:
    """What became of a run: how it ended, and what the model read of its calls."""

    run_id: UUID
    partial_reason: str | None
    texts: Sequence[str]
    shown: Sequence[str | None]
    """The lines that the person who approved read."""

    @property
    def codes(self) -> list[str]:
        """How each call ended."""
        return [str(json.loads(text.splitlines()[0]).get("reason_code", "ok")) for text in self.texts]

    @property
    def data(self) -> Any:
        """What the last call answered, from inside the envelope of outside content."""
        body = json.loads(self.texts[-1])
        assert body["ok"] is True
        return body["external"]["data"]


async def led(h: Harness, run_id: UUID | None = None) -> Told:
    """Lead a run to its end, a person approving everything."""
    run_id = run_id or await h.start()
    shown: list[str | None] = []
    settled = await h.settle(run_id)
    while settled.pending:
        shown += [approval.shown for approval in settled.pending]
        await h.decide(run_id)
        settled = await h.settle(run_id)
    texts = [text for role, text in await h.messages(run_id) if role == "tool"]
    return Told(run_id=run_id, partial_reason=settled.partial_reason, texts=texts, shown=shown)


async def held(h: Harness) -> UUID:
    """Lead a run with one send until its claim is held, its outcome unknown."""
    run_id = await h.start()
    await h.settle(run_id)
    await h.decide(run_id)
    await h.advance(run_id)
    [entry] = await journal(h, run_id)
    assert entry["state"] == "processing"
    return run_id


async def time_passes(h: Harness, *, hour: bool = False) -> None:
    """The lease of what is held ends; with ``hour`` the vendor has forgotten the key as well."""
    since = "effect_sent_at - interval '56 minutes'" if hour else "effect_sent_at"
    await execute(
        h,
        f"update agent.idempotency_keys set lease_expires_at = clock_timestamp(), effect_sent_at = {since}"
        " where state = 'processing'",
    )
    await execute(h, "update agent.runs set due_at = clock_timestamp()")
