"""Which answers are brought into a result beside the event loop."""

from typing import Any

import pytest
from pydantic import BaseModel

from agentic.services.tools.boundary import LARGE_CHARS, LARGE_PARTS, is_large


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
