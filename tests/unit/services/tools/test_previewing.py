"""The five rules of a preview, and what a person sees when one is broken."""

import asyncio
from dataclasses import replace
from typing import Any
from uuid import uuid4

import pytest
from pydantic import BaseModel

from agentic.contract.clock import SystemClock
from agentic.contract.principal import Principal
from agentic.services.tools.context import CallContext
from agentic.services.tools.declarations import Tool, internal_tool
from agentic.services.tools.previewing import MAX_PREVIEW_BYTES, preview_line

pytestmark = pytest.mark.guarantee("A6")


class Words(BaseModel):
    text: str


@internal_tool("a.b", "Does.", side_effects="write", repeatable=False)
async def plain_tool(ctx: CallContext, args: Words) -> dict[str, str]:
    return {}


def with_preview(preview: Any) -> Tool:
    return replace(plain_tool, preview=preview)


def context(*, seconds: float = 5, secrets: tuple[str, ...] = ()) -> CallContext:
    async def nothing() -> None:
        return

    clock = SystemClock()
    return CallContext(
        principal=Principal(organization_id=uuid4()),
        run_id=uuid4(),
        tool="a.b",
        idempotency_key=None,
        attempt=1,
        timeout_s=1.0,
        deadline=clock.monotonic() + seconds,
        clock=clock,
        before_first_byte=nothing,
        secrets=secrets,
    )


async def line(answer: object, **given: Any) -> str | None:
    async def preview(_ctx: CallContext, _args: Any) -> Any:
        if isinstance(answer, BaseException):
            raise answer
        return answer

    return await preview_line(with_preview(preview), context(**given), Words(text="x"))


async def test_a_tool_without_a_preview_shows_its_arguments() -> None:
    assert await preview_line(with_preview(None), context(), Words(text="x")) is None


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("Send to Per", "Send to Per"),
        ("  two\nlines \t here ", "two lines here"),
        ("é" * (MAX_PREVIEW_BYTES // 2), "é" * (MAX_PREVIEW_BYTES // 2)),
    ],
)
async def test_a_preview_is_one_line_of_at_most_512_bytes(said: str, shown: str) -> None:
    assert await line(said) == shown


@pytest.mark.parametrize(
    "broken",
    ["", " \n ", None, 7, ["x"], "x" * (MAX_PREVIEW_BYTES + 1), "é" * (MAX_PREVIEW_BYTES // 2 + 1), "nul \0 here"],
    ids=repr,
)
async def test_a_preview_that_breaks_a_rule_is_left_out_and_the_approval_is_filed(broken: object) -> None:
    assert await line(broken) is None


@pytest.mark.parametrize("error", [ValueError("x"), TimeoutError(), asyncio.CancelledError(), RuntimeError()], ids=repr)
async def test_a_preview_that_fails_never_loses_the_approval(error: BaseException) -> None:
    assert await line(error) is None


async def test_a_preview_that_hangs_is_cut_at_the_call_s_deadline() -> None:
    async def hangs(_ctx: CallContext, _args: Any) -> str:
        await asyncio.sleep(60)
        return "late"

    async with asyncio.timeout(20):
        assert await preview_line(with_preview(hangs), context(seconds=0.05), Words(text="x")) is None


async def test_a_preview_is_stopped_with_the_segment_that_asked_for_it() -> None:
    started = asyncio.Event()

    async def hangs(_ctx: CallContext, _args: Any) -> str:
        started.set()
        await asyncio.sleep(60)
        return "late"

    task = asyncio.create_task(preview_line(with_preview(hangs), context(seconds=60), Words(text="x")))
    await asyncio.wait_for(started.wait(), 20)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(task, 2)


@pytest.mark.guarantee("B2")
async def test_a_preview_shows_no_credential_of_the_call() -> None:
    shown = await line("key sk-live-1234567890 is used", secrets=("sk-live-1234567890",))
    assert shown is not None
    assert "1234567890" not in shown
