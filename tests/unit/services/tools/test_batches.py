"""A call with too many items ends before anything outside the process is asked, and is never split."""

from typing import Any
from uuid import uuid4

import pytest
from pydantic import BaseModel

from agentic.contract.principal import Principal
from agentic.contract.results import ErrorCode
from agentic.contract.trust import Trust
from agentic.services.tools.calls import ToolCall, ToolInvocation
from agentic.services.tools.context import CallContext
from agentic.services.tools.declarations import internal_tool
from agentic.services.tools.default_invoker import DefaultToolInvoker
from agentic.services.tools.models import FrozenTool
from agentic.services.tools.registry import build_registry
from agentic.testing import FakeClock

reached: list[str] = []


class Items(BaseModel):
    items: list[str]


async def preview(ctx: CallContext, args: BaseModel) -> str:
    reached.append("preview")
    return "a line"


@internal_tool(
    "notes.import",
    "Imports.",
    side_effects="write",
    repeatable=False,
    batch_argument="items",
    max_batch_size=2,
    approval_preview=True,
    preview=preview,
    metered=True,
    cost_bound="0.01",
)
async def imports(ctx: CallContext, args: Items) -> dict[str, int]:
    reached.append("handler")
    return {"count": len(args.items)}


class Watched:
    """Stands for the journal, the policy and the meter: writes down whatever is asked of it, and answers nothing but refusals."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __getattr__(self, asked: str) -> Any:
        async def answer(*_: Any, **__: Any) -> None:
            reached.append(f"{self.name}.{asked}")
            if asked != "refuse":
                raise LookupError(f"{self.name} was asked to {asked}")

        return answer


async def invoked(items: list[str]) -> Any:
    reached.clear()
    meter: Any = Watched("meter")
    invoker = DefaultToolInvoker(
        registry=build_registry([imports]),
        ledger=Watched("ledger"),
        policy=Watched("policy"),
        clock=FakeClock(),
        meter=meter,
    )
    run_id = uuid4()
    inv = ToolInvocation(
        principal=Principal(organization_id=uuid4(), user_id=None),
        run_id=run_id,
        root_run_id=run_id,
        definition="tested",
        fence=1,
        tools={imports.spec.name: FrozenTool(spec=imports.spec, mode=imports.spec.mode)},
        context_trust=Trust.USER,
    )
    text = Items(items=items).model_dump_json()
    return await invoker.invoke(ToolCall(tool=imports.spec.name, arguments_text=text), inv)


@pytest.mark.guarantee("D3", "M2")
@pytest.mark.parametrize("count", [3, 500])
async def test_an_oversized_batch_reaches_no_journal_read_policy_read_claim_handler_preview_or_meter(
    count: int,
) -> None:
    result = await invoked(["x"] * count)
    assert reached == ["ledger.refuse"]  # the tree's record of the refusal, and nothing else
    assert result.error.code is ErrorCode.BATCH_TOO_LARGE
    assert result.error.detail == "/items takes at most 2 items."


async def test_a_batch_at_its_limit_goes_on_to_the_journal() -> None:
    with pytest.raises(LookupError, match="preflight"):
        await invoked(["x"] * 2)
    assert reached == ["ledger.preflight"]
