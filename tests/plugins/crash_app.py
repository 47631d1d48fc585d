"""The app of the crash tests: one tool of each class, which the environment tells where to die.

``CRASH_WHERE`` is ``before`` or ``after`` the effect and counts for the first execution of all, as does ``stalled`` in front of it for a
process that stops there until it is told to go on; ``CRASH_LEDGER`` is the world.
"""

import os
import signal
from decimal import Decimal
from pathlib import Path

from pydantic import BaseModel

from agentic.bootstrap import App
from agentic.runtime.agent.agno.scripted import ScriptedModel
from agentic.runtime.agent.script import Call, Calls, Say, Turn
from agentic.services.connections.fixed import FixedConnections
from agentic.services.tools.context import CallContext
from agentic.services.tools.declarations import Tool, internal_tool
from agentic.testing import EffectLedger, die


class Words(BaseModel):
    text: str


class Done(BaseModel):
    by: int


def world() -> EffectLedger:
    return EffectLedger(Path(os.environ["CRASH_LEDGER"]))


def first_time(place: str) -> bool:
    """Whether no process has come to this place before."""
    return EffectLedger(Path(os.environ["CRASH_LEDGER"] + ".visits")).record("visit", key=place)


async def act(ctx: CallContext, args: Words, *, key: str | None) -> Done:
    first = first_time("act")
    if first and os.environ["CRASH_WHERE"] == "before":
        die()
    if first and os.environ["CRASH_WHERE"] == "stalled before":
        os.kill(os.getpid(), signal.SIGSTOP)
    await ctx.before_first_byte()
    if first and os.environ["CRASH_WHERE"] == "marked":
        die()
    world().record(ctx.tool, {"text": args.text, "key": ctx.idempotency_key, "attempt": ctx.attempt}, key=key)
    if first and os.environ["CRASH_WHERE"] == "after":
        die()
    if first and os.environ["CRASH_WHERE"] == "stalled after":
        os.kill(os.getpid(), signal.SIGSTOP)
    return Done(by=os.getpid())


@internal_tool(
    "act.again",
    "Idempotent.",
    side_effects="write",
    risk="low",
    repeatable=False,
    idempotency="idempotent",
    timeout_s=5,
)
async def again(ctx: CallContext, args: Words) -> Done:
    return await act(ctx, args, key=None)


@internal_tool(
    "act.keyed", "Conditional.", side_effects="write", risk="low", repeatable=False, idempotency="conditional", vendor_key_ttl_s=3600,
    timeout_s=5,
)  # fmt: skip
async def keyed(ctx: CallContext, args: Words) -> Done:
    return await act(ctx, args, key=ctx.idempotency_key)


@internal_tool(
    "act.forgotten", "Conditional, soon forgotten.", side_effects="write", risk="low", repeatable=False, idempotency="conditional",
    vendor_key_ttl_s=1, timeout_s=5,
)  # fmt: skip
async def forgotten(ctx: CallContext, args: Words) -> Done:
    return await act(ctx, args, key=ctx.idempotency_key)


@internal_tool("act.once", "Not idempotent.", side_effects="write", risk="low", repeatable=False, timeout_s=5)
async def once(ctx: CallContext, args: Words) -> Done:
    return await act(ctx, args, key=None)


@internal_tool(
    "act.marked", "Not idempotent, marked at the transport.", side_effects="write", risk="low", repeatable=False,
    watermark="at_transport", timeout_s=5,
)  # fmt: skip
async def marked(ctx: CallContext, args: Words) -> Done:
    return await act(ctx, args, key=None)


async def ask_the_world(ctx: CallContext, args: BaseModel) -> Done | None:
    return Done(by=0) if world().count(ctx.tool) else None


@internal_tool(
    "act.probed", "Not idempotent, can be asked.", side_effects="write", risk="low", repeatable=False, probe=ask_the_world, timeout_s=5,
)  # fmt: skip
async def probed(ctx: CallContext, args: Words) -> Done:
    return await act(ctx, args, key=None)


@internal_tool("act.look", "Looks.", timeout_s=5)
async def look(ctx: CallContext, args: Words) -> Done:
    if first_time("look") and os.environ["CRASH_WHERE"] == "look":
        die()
    return Done(by=os.getpid())


async def pay(ctx: CallContext, args: Words, *, key: str | None) -> Done:
    done = await act(ctx, args, key=key)
    ctx.report_usage(1, "credit", cost=Decimal("1.00"))
    return done


@internal_tool(
    "paid.keyed", "Conditional, and costs.", side_effects="write", risk="low", repeatable=False, idempotency="conditional",
    vendor_key_ttl_s=3600, timeout_s=5, metered=True, cost_bound="3.00",
)  # fmt: skip
async def paid_keyed(ctx: CallContext, args: Words) -> Done:
    return await pay(ctx, args, key=ctx.idempotency_key)


@internal_tool(
    "paid.once", "Not idempotent, and costs.", side_effects="write", risk="low", repeatable=False, timeout_s=5, metered=True,
    cost_bound="3.00",
)  # fmt: skip
async def paid_once(ctx: CallContext, args: Words) -> Done:
    return await pay(ctx, args, key=None)


@internal_tool(
    "paid.marked", "Not idempotent, marked at the transport, and costs.", side_effects="write", risk="low", repeatable=False,
    watermark="at_transport", timeout_s=5, metered=True, cost_bound="3.00",
)  # fmt: skip
async def paid_marked(ctx: CallContext, args: Words) -> Done:
    return await pay(ctx, args, key=None)


@internal_tool("paid.look", "Looks, and costs.", timeout_s=5, metered=True, cost_bound="3.00")
async def paid_look(ctx: CallContext, args: Words) -> Done:
    return await pay(ctx, args, key=None)


TOOLS: list[Tool] = [
    *(again, keyed, forgotten, once, marked, probed, look),
    *(paid_keyed, paid_once, paid_marked, paid_look),
]


def script() -> list[Turn]:
    """One call of the tool in ``CRASH_TOOL``; with ``CRASH_READ`` an inline read goes before it, in the same turn."""
    call = Call(os.environ["CRASH_TOOL"], {"text": "hello"}, reword=("text",))
    look = [Call("act.look", {"text": "there"}, reword=("text",))] if os.environ.get("CRASH_READ") else []
    return [Calls([*look, call]), Say("Done.")]


async def _die_when_asked(number: int) -> None:
    if os.environ["CRASH_WHERE"] == f"request {number}" and first_time("request"):
        die()


def make() -> App:
    """The app of the child processes; the model words everything anew whenever it is asked."""
    return App(
        tools=TOOLS,
        models={"scripted": lambda: ScriptedModel(script=script(), reword=True, on_request=_die_when_asked)},
        connections=FixedConnections(),
    )
