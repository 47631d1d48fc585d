"""Which answers are brought into a result beside the event loop."""

from typing import Annotated, Any
from uuid import uuid4

import pytest
from pydantic import BaseModel, Field

from agentic.contract.results import ErrorCode
from agentic.services.tools.boundary import LARGE_CHARS, LARGE_PARTS, Facts, bounded, is_large
from agentic.services.tools.context import CallContext
from agentic.services.tools.declarations import internal_tool


class _Page(BaseModel):
    text: str
    links: list[str]


@pytest.mark.parametrize(
    "value",
    [
        "x" * (LARGE_CHARS + 1),
        [1] * (LARGE_PARTS + 1),
        {"rows": [{"cells": [1] * 50} for _ in range(100)]},
        _Page(text="x" * (LARGE_CHARS + 1), links=[]),
        {n: n for n in range(LARGE_PARTS + 1)},
    ],
    ids=["text", "list", "nested", "model", "object"],
)
def test_much_text_or_many_parts_are_large(value: Any) -> None:
    assert is_large(value)


@pytest.mark.parametrize(
    "value",
    [None, "x", {"id": 1}, [1] * 100, _Page(text="short", links=["a"]), b"bytes"],
    ids=["nothing", "text", "object", "list", "model", "bytes"],
)
def test_an_ordinary_answer_is_not(value: Any) -> None:
    assert not is_large(value)


def test_a_value_that_holds_itself_is_judged_in_bounded_time() -> None:
    loop: list[Any] = []
    loop.append(loop)
    assert is_large(loop)


class _Raises(dict[str, Any]):
    def values(self) -> Any:
        raise RuntimeError


@pytest.mark.guarantee("J4")
def test_what_cannot_be_looked_at_is_left_to_the_boundary_itself() -> None:
    assert is_large(_Raises(a=1))
    assert is_large([_Raises(a=1)])


@internal_tool("crm.list", "Lists.", max_output_bytes=1_000)
async def _listing(ctx: CallContext, args: _Page) -> Annotated[list[str], Field(min_length=100)]:
    """Declared for its spec alone."""
    return []


@pytest.mark.guarantee("B1")
async def test_a_handler_result_is_valid_against_its_output_schema_before_the_boundary_changes_its_transport_form() -> (
    None
):
    facts = Facts(span_id=uuid4())
    whole, _ = await bounded(_listing.spec, ["row " * 10] * 100, facts)
    assert isinstance(whole.data, list)
    assert (whole.ok, whole.meta.truncated, whole.meta.count) == (True, True, len(whole.data))
    assert len(whole.data) < 100
    short, _ = await bounded(_listing.spec, ["row"] * 99, facts)
    assert short.error is not None
    assert short.error.code is ErrorCode.INVALID_OUTPUT
