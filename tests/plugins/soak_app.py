"""The app of the soak: a tool of each kind, whose effects are lines of a ledger, and a model that does what its run's input lists.

``SOAK_LEDGER`` names the ledger. Handlers take a moment before and after their effect, so that processes die on both sides of it.
"""

import asyncio
import os
import random
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path

from pydantic import BaseModel

from agentic.bootstrap import App
from agentic.contract.principal import RunCeilings
from agentic.runtime.agent.agno.scripted import ScriptedModel
from agentic.runtime.agent.definition import AgentDefinition
from agentic.runtime.agent.script import Answered, Call, Calls, Say, SeenMessage, Turn, Usage
from agentic.services.tools.context import CallContext
from agentic.services.tools.declarations import Tool, internal_tool
from agentic.testing import EffectLedger

MOMENT_S = 0.15
TIMEOUT_S = 3
MOST_STEPS = 6
COST = Decimal("1.00")


class Words(BaseModel):
    text: str


class Done(BaseModel):
    ok: bool = True


def ledger() -> EffectLedger:
    """What happened to the world."""
    return EffectLedger(Path(os.environ["SOAK_LEDGER"]))


async def act(ctx: CallContext, *, key: str | None) -> Done:
    """One effect; under a key, the world keeps it once."""
    await asyncio.sleep(random.uniform(0, MOMENT_S))
    await ctx.before_first_byte()
    await asyncio.to_thread(ledger().record, ctx.tool, str(ctx.run_id), key=key)
    await asyncio.sleep(random.uniform(0, MOMENT_S))
    return Done()


@internal_tool("soak.look", "Looks.", timeout_s=TIMEOUT_S)
async def look(ctx: CallContext, args: Words) -> Done:
    await asyncio.sleep(random.uniform(0, MOMENT_S))
    return Done()


@internal_tool("soak.buy", "Looks, and costs.", timeout_s=TIMEOUT_S, metered=True, cost_bound="3.00")
async def buy(ctx: CallContext, args: Words) -> Done:
    await asyncio.sleep(random.uniform(0, MOMENT_S))
    ctx.report_usage(1, "credit", cost=COST)
    return Done()


@internal_tool(
    "soak.put", "Idempotent.", side_effects="write", risk="low", repeatable=False, idempotency="idempotent", timeout_s=TIMEOUT_S
)  # fmt: skip
async def put(ctx: CallContext, args: Words) -> Done:
    return await act(ctx, key=f"{ctx.run_id} {args.text}")


@internal_tool(
    "soak.pay", "Conditional, and costs.", side_effects="write", risk="low", repeatable=False, idempotency="conditional",
    vendor_key_ttl_s=3600, timeout_s=TIMEOUT_S, metered=True, cost_bound="3.00",
)  # fmt: skip
async def pay(ctx: CallContext, args: Words) -> Done:
    done = await act(ctx, key=ctx.idempotency_key)
    ctx.report_usage(1, "credit", cost=COST)
    return done


@internal_tool(
    "soak.once", "Not idempotent.", side_effects="write", risk="low", repeatable=False, watermark="at_transport", timeout_s=TIMEOUT_S
)  # fmt: skip
async def once(ctx: CallContext, args: Words) -> Done:
    return await act(ctx, key=None)


async def _preview(ctx: CallContext, args: Words) -> str:
    return args.text


@internal_tool(
    "soak.send", "Conditional, and asks.", side_effects="write", risk="high", repeatable=False, idempotency="conditional",
    vendor_key_ttl_s=3600, watermark="at_transport", approval_preview=True, preview=_preview, timeout_s=TIMEOUT_S,
)  # fmt: skip
async def send(ctx: CallContext, args: Words) -> Done:
    return await act(ctx, key=ctx.idempotency_key)


@internal_tool(
    "soak.tell", "Not idempotent, and asks.", side_effects="write", risk="high", repeatable=False, approval_preview=True,
    preview=_preview, timeout_s=TIMEOUT_S,
)  # fmt: skip
async def tell(ctx: CallContext, args: Words) -> Done:
    return await act(ctx, key=None)


READS: list[Tool] = [look, buy]
WRITES: list[Tool] = [put, pay, once, send, tell]
NAMES = tuple(tool.spec.name for tool in (*READS, *WRITES))
AGENT = AgentDefinition(
    name="soak", instructions="Act.", model="scripted", tools=NAMES, ceilings=RunCeilings(max_cost=Decimal(1000))
)


def text_of(turns: Sequence[Sequence[str]]) -> str:
    """The input of a run that makes these calls, a list of names for each turn."""
    return ";".join(",".join(turn) for turn in turns)


def _turn(number: int) -> Turn:
    def play(seen: Sequence[SeenMessage]) -> Answered:
        asked = next(message.text for message in seen if message.role == "user").split(";")
        if number >= len(asked):
            return Say("Done.")
        return Calls([Call(name, {"text": name}, reword=("text",)) for name in asked[number].split(",")])

    return play


def make() -> App:
    """The app; its model words everything anew whenever it is asked."""
    script = [_turn(number) for number in range(MOST_STEPS + 1)]
    return App(
        tools=[*READS, *WRITES],
        models={"scripted": lambda: ScriptedModel(script=script, reword=True, usage=Usage(cost=Decimal(0)))},
    )
