"""Secrets planted wherever a call can hold one, then looked for in every row, record, event, span and message."""

import asyncio
import base64
import json
import logging
import sys
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import quote

import pytest
from pydantic import BaseModel

from agentic.runtime.agent.script import Turn
from agentic.services.tools.context import CallContext
from agentic.services.tools.declarations import Tool, internal_tool, vendor_tool
from agentic.services.tools.handlers.errors import OutcomeUnknown, RetryableUpstreamError, UpstreamUnavailableError
from agentic.testing import Call, Calls, Harness, Say, harness
from core_world import rows
from telemetry_recorder import recorded

SECRET = "tok_live/0123+456789=zz"
"""What the handler used. Nobody may find it anywhere, in any form."""
TYPED = "pw-typed-by-the-model-77"
"""What the model itself wrote as an argument: it stays in the model's own message and its proposal, and nowhere else."""
FORMS = {
    "plain": SECRET,
    "percent": quote(SECRET, safe=""),
    "json": json.dumps(f"say {SECRET}"),
    "base64": base64.b64encode(f"user:{SECRET}".encode()).decode(),
    "url": f"https://app:{SECRET}@vendor.example/x?key={SECRET}",
    "header": f"Authorization: Bearer {SECRET}\r\nX-Api-Key: {SECRET}",
    "cut": f"{SECRET[:5]}\x07{SECRET[5:]}",
}
Does = Callable[[CallContext], Awaitable[Any]]


class Order(BaseModel):
    note: str
    token: str


class Told(BaseModel):
    model_config = {"extra": "allow"}


class Business(Exception):
    """A refusal of the application that quotes too much."""


def planted() -> dict[str, Any]:
    return {
        **FORMS,
        "nested": [{"deep": [FORMS]}, [SECRET[:7], [SECRET[7:12]], SECRET[12:]]],
        SECRET: "as a key",
        "password": "hunter2-by-name",
        "headers": [{"name": "Authorization", "value": "Basic hunter2-by-name"}],
    }


async def returns(ctx: CallContext) -> Any:
    return planted()


async def returns_too_much(ctx: CallContext) -> Any:
    return {**planted(), "rows": [planted() for _ in range(200)]}


async def off_schema(ctx: CallContext) -> Any:
    return [SECRET]


async def raises(ctx: CallContext) -> Any:
    empty: dict[str, Any] = {}
    try:
        return empty[SECRET]
    except KeyError as error:
        raise RuntimeError(f"GET {FORMS['url']}") from error


async def refuses_as_the_application(ctx: CallContext) -> Any:
    raise Business(" ".join(FORMS.values()))


async def refuses_as_the_remote(ctx: CallContext) -> Any:
    raise UpstreamUnavailableError(SECRET, external_text=" ".join(FORMS.values()))


async def is_busy(ctx: CallContext) -> Any:
    raise RetryableUpstreamError(SECRET, external_text=FORMS["header"])


async def may_have_happened(ctx: CallContext) -> Any:
    await ctx.before_first_byte()
    raise OutcomeUnknown(SECRET)


async def quotes_a_child(ctx: CallContext) -> Any:
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-c", f"import sys; sys.exit({'TOKEN=' + SECRET!r})", stderr=asyncio.subprocess.PIPE
    )
    _, stderr = await child.communicate()
    assert SECRET.encode() in stderr
    raise UpstreamUnavailableError("the child ended", external_text=stderr.decode())


async def saves(ctx: CallContext) -> Any:
    for form in FORMS.values():
        ctx.save_artifact(form.replace("\x07", "").encode(), "text/plain")
    return {"saved": len(FORMS)}


async def repeats_its_arguments(ctx: CallContext) -> Any:
    return {"heard": f"note {TYPED} and {SECRET}"}


BEHAVIOURS: list[Does] = [
    returns,
    returns_too_much,
    off_schema,
    raises,
    refuses_as_the_application,
    refuses_as_the_remote,
    is_busy,
    may_have_happened,
    quotes_a_child,
    saves,
    repeats_its_arguments,
]


def tools() -> list[Tool]:
    return [*(_tool(does, kind) for does in BEHAVIOURS for kind in ("read", "write")), _asking()]


def _tool(does: Does, kind: str) -> Tool:
    fields: dict[str, Any] = {} if kind == "read" else {"side_effects": "write", "risk": "low", "repeatable": False}

    @internal_tool(f"vault.{kind}_{does.__name__}", "Uses a secret.", refusals={Business: "conflict"}, **fields)
    async def handler(ctx: CallContext, args: Order) -> Told:
        ctx.secrets = (*ctx.secrets, SECRET, TYPED)
        return await does(ctx)  # type: ignore[no-any-return]

    return handler


def _asking() -> Tool:
    async def preview(ctx: CallContext, args: Any) -> str:
        ctx.secrets = (*ctx.secrets, SECRET, TYPED)
        return f"order {args.note} with {SECRET} and {args.token}"

    @vendor_tool(
        "vault.order",
        "Sends an order.",
        side_effects="send",
        risk="high",
        idempotency="conditional",
        vendor_key_ttl_s=3600,
        connection="shop",
        repeatable=False,
        approval_preview=True,
        preview=preview,
    )
    async def handler(ctx: CallContext, args: Order) -> Told:
        ctx.secrets = (*ctx.secrets, SECRET, TYPED)
        return Told.model_validate(planted())

    return handler


def _hidden(secret: str) -> list[str]:
    """Forms of a secret that no text may hold."""
    coded = base64.b64encode(secret.encode()).decode()
    return [
        secret,
        quote(secret, safe=""),
        secret.encode().hex(),
        coded[: len(coded) // 4 * 4 - 4],
        json.dumps(secret)[1:-1],
    ]


async def every_row(h: Harness) -> dict[str, list[str]]:
    """The text of every row of every table of ours; bytes as text where they are text, and in hex."""
    tables = await rows(
        h,
        "select c.relname as name from pg_class c join pg_namespace n on n.oid = c.relnamespace "
        "where n.nspname = 'agent' and c.relkind in ('r', 'p') and not c.relispartition",
    )
    found: dict[str, list[str]] = {}
    for table in tables:
        read = await h.platform.database.all(f"select t.*, t::text as whole_row from agent.{table['name']} t", {})
        texts = []
        for row in read:
            texts.append(
                " ".join(bytes(v).decode("latin-1") for v in row.values() if isinstance(v, bytes | memoryview))
            )
            texts.append(str(row["whole_row"]))
        found[table["name"]] = texts
    return found


@pytest.mark.guarantee("B2")
@pytest.mark.guarantee("J4")
async def test_no_secret_of_a_call_is_in_any_row_record_event_span_or_message(
    database: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    given = {"note": f"pay with {TYPED}", "token": TYPED}
    with recorded() as told:
        for tool in tools():
            script: list[Turn] = [Calls([Call(tool.spec.name, given)]), Say("Done.")]
            async with harness(tools=[tool], script=script, database_url=database, claim_grace_s=0.1) as h:
                run_id = await h.start()
                settled = await h.settle(run_id)
                if settled.pending:
                    shown = await h.platform.approvals.find(h.organization_id, run_id=run_id, status="pending")
                    assert not any(form in repr(shown) for secret in (SECRET, TYPED) for form in _hidden(secret))
                    await h.decide(run_id)
                    settled = await h.settle(run_id)
                assert settled.state in ("succeeded", "failed"), tool.spec.name
                for role, text in await h.messages(run_id):
                    hidden = _hidden(SECRET) + (_hidden(TYPED) if role == "tool" else [])
                    assert not any(form in text for form in hidden), (tool.spec.name, role)
                said = repr([event.model_dump() for event in h.bus.events]) + repr(settled.answer)
                assert SECRET not in said
                assert TYPED not in said
            if tool.spec.name == "vault.order":
                stored = await _stored(database)

    allowed = {
        "run_messages",
        "proposals",
    }  # what the model wrote itself: it is executed and replayed as it was written
    for table, texts in stored.items():
        for text in texts:
            hidden = _hidden(SECRET) + ([] if table in allowed else _hidden(TYPED)) + ["hunter2-by-name"]
            assert not any(form in text for form in hidden), table
    assert len(stored["artifacts"]) > len(FORMS)
    assert stored["spans"]
    assert stored["idempotency_keys"]
    for record in caplog.records:
        line = record.getMessage() + str(record.exc_info or "") + repr(record.__dict__.get("args"))
        assert not any(form in line for secret in (SECRET, TYPED) for form in _hidden(secret)), record.name
    spans = repr([(span.name, span.attributes, span.events, span.status) for span in told.spans])
    assert "vault.order" in spans
    assert not any(form in spans for secret in (SECRET, TYPED) for form in _hidden(secret))


async def _stored(database: str) -> dict[str, list[str]]:
    async with harness(tools=tools()[:1], script=[Say("x")], database_url=database) as h:
        return await every_row(h)
