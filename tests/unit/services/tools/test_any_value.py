"""One law: whatever Python value a handler returns, its answer renders, is as large as it was measured, and is whole JSON."""

import asyncio
import dataclasses
import datetime
import enum
import json
import unicodedata
import uuid
from collections import OrderedDict, UserDict, deque
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from agentic.contract.bounds import bound
from agentic.contract.encoding import encode, encoded_size
from agentic.contract.json_types import JsonValue
from agentic.contract.plain import plain
from agentic.services.tools.boundary import Facts, bounded
from agentic.services.tools.declarations import internal_tool
from agentic.services.tools.outcomes import model_text
from agentic.services.tools.result_boundary import BoundaryLimits, apply_boundary

SECRET = "tok_live_0123456789"


class Loud:
    """Raises whatever it is asked, with a secret in the words."""

    def _raise(self, *_args: object) -> Any:
        raise RuntimeError(SECRET)

    __str__ = __repr__ = __iter__ = __len__ = __eq__ = __hash__ = __bool__ = __getattr__ = _raise


class LyingText(str):
    def __str__(self) -> str:
        return SECRET

    def encode(self, *_args: Any, **_kwargs: Any) -> bytes:
        return b"\xff"

    def isascii(self) -> bool:
        return True


class LyingTime(datetime.datetime):
    def isoformat(self, *_args: Any, **_kwargs: Any) -> Any:
        return object()


class LyingNumber(int):
    def __index__(self) -> Any:
        raise RuntimeError(SECRET)

    __int__ = __float__ = __str__ = __repr__ = __index__


class LyingList(list[Any]):
    def __iter__(self) -> Iterator[Any]:
        raise RuntimeError(SECRET)


class LyingDict(dict[Any, Any]):
    def items(self) -> Any:
        return [(1, 2, 3)]


class LyingMapping(Mapping[Any, Any]):
    def _raise(self, *_args: object) -> Any:
        raise RuntimeError(SECRET)

    __getitem__ = __iter__ = __len__ = values = items = _raise


class Nameless(type):
    @property
    def __name__(cls) -> Any:  # type: ignore[override]
        raise RuntimeError(SECRET)


class OfNoName(metaclass=Nameless):
    pass


class Chameleon:
    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        return dict


class Colour(enum.Enum):
    RED = ("red", {1, 2})
    DEEP = (1, (2, (b"3", None)))


@dataclasses.dataclass
class Card:
    title: Any
    inner: Any = None

    @property
    def broken(self) -> str:
        raise RuntimeError(SECRET)


class Page(BaseModel):
    title: Any
    inner: Any = None


def cycle() -> list[Any]:
    loop: list[Any] = [1]
    loop.append({"again": loop})
    return loop


def deep(times: int) -> Any:
    value: Any = "bottom"
    for _ in range(times):
        value = [value]
    return value


leaves = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**400), 10**400),
    st.floats(),
    st.text(st.characters()),
    st.sampled_from(["\0", "\ud800", "\udfff\ud800", "👩\u200d👧" * 200, "\u2028", "\\u0000", SECRET, "e\u0301" * 300]),
    st.binary(max_size=6_000),
    st.decimals(),
    st.dates(),
    st.datetimes(timezones=st.just(datetime.UTC) | st.none()),
    st.times(),
    st.timedeltas(),
    st.uuids(),
    st.fractions(),
    st.complex_numbers(),
    st.sampled_from(list(Colour)),
    st.builds(LyingText),
    st.just(LyingTime(2026, 1, 1)),
    st.builds(LyingNumber),
    st.builds(Chameleon),
    st.builds(LyingMapping),
    st.none().map(lambda _: OfNoName()),
    st.builds(Loud),
    st.builds(LyingList, st.just([1])),
    st.builds(LyingDict, st.just({"a": 1})),
    st.builds(ValueError, st.just(SECRET)),
    st.builds(cycle),
    st.builds(deep, st.sampled_from([63, 64, 65, 3_000])),
    st.sampled_from([object, len, type, Exception, ..., NotImplemented, memoryview(b"abc"), range(3), b""]),
)
keys = (
    st.text(st.characters(), max_size=5)
    | st.integers()
    | st.none()
    | st.uuids()
    | st.dates()
    | st.tuples(st.integers())
)
values = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.lists(inner, max_size=6),
        st.tuples(inner, inner),
        st.dictionaries(keys, inner, max_size=5),
        st.dictionaries(st.text(max_size=3), inner, max_size=3).map(UserDict),
        st.dictionaries(st.text(max_size=3), inner, max_size=3).map(OrderedDict),
        st.frozensets(st.integers() | st.text() | st.uuids(), max_size=5),
        st.lists(inner, max_size=4).map(deque),
        st.builds(Card, inner, inner),
        st.builds(Page, title=inner, inner=inner),
    ),
    max_leaves=12,
)


@internal_tool("any.thing", "Answers anything.", max_output_bytes=1_500)
async def anything(ctx: Any, args: Page) -> Any:
    """Declared for its spec alone."""


@pytest.mark.guarantee("J4")
@pytest.mark.guarantee("B1")
@pytest.mark.guarantee("B4")
@given(values, st.integers(2, 3_000))
def test_any_python_value_renders_within_the_limit_and_as_large_as_it_was_measured(value: object, limit: int) -> None:
    result = apply_boundary(value, spec_limits=BoundaryLimits(max_output_bytes=limit), untrusted=True)
    rendered = encode(result.data)
    assert len(rendered) == encoded_size(result.data) <= limit
    assert json.loads(rendered) == result.data
    assert encode(json.loads(rendered)) == rendered
    if result.captured is not None:
        json.loads(result.captured)
        assert len(result.captured) <= 4 * limit


@pytest.mark.guarantee("B2")
@given(values)
def test_no_python_value_brings_a_secret_of_the_call_past_the_boundary(value: object) -> None:
    facts = Facts(span_id=uuid.uuid4(), secrets=(SECRET,))
    result, artifact = asyncio.run(bounded(anything.spec, value, facts))
    assert result.ok or result.error is not None
    assert SECRET not in model_text("any.thing", result)
    assert artifact is None or SECRET.encode() not in (artifact.body or b"")


@given(values, st.integers(2, 3_000))
@settings(max_examples=200)
def test_bounding_breaks_no_structure_and_no_character_and_changes_nothing_the_second_time(
    value: object, limit: int
) -> None:
    whole = plain(value)
    once = bound(whole, limit).value
    assert bound(once, limit).value == once
    assert _is_part(once, whole)


def test_what_lies_about_itself_is_shown_as_what_it_is_or_as_a_placeholder() -> None:
    shown = plain(
        [LyingText("a"), LyingTime(2026, 1, 1), LyingNumber(3), LyingList([1]), LyingDict({"a": 1}), Loud(), OfNoName()]
    )
    assert shown == [
        "a",
        "<unrenderable LyingTime>",
        3,
        "<unrenderable LyingList>",
        "<unrenderable LyingDict>",
        "<unrenderable Loud>",
        "<unrenderable OfNoName>",
    ]
    assert plain({"d": Decimal("1E+400"), "c": Chameleon()})["d"] == "1E+400"  # type: ignore[index, call-overload]


def _is_part(shown: JsonValue, whole: JsonValue) -> bool:
    """Whether what is shown is the whole with parts left out by the rules, and nothing else."""
    if shown == whole or (isinstance(shown, dict) and shown.keys() == {"__dropped__"}):
        return True
    if isinstance(shown, list) and isinstance(whole, list):
        return len(shown) <= len(whole) and all(map(_is_part, shown, whole))
    if isinstance(shown, dict) and isinstance(whole, dict):
        return list(shown) == list(whole)[: len(shown)] and all(_is_part(shown[key], whole[key]) for key in shown)
    if shown == "":
        return True
    if not isinstance(shown, str) or not isinstance(whole, str):
        return False
    head, note, tail = shown.partition("\n[... ")
    tail = tail.partition(" ...]\n")[2]
    clean = not tail or not unicodedata.category(tail[0]).startswith("M")
    return bool(note) and whole.startswith(head) and whole.endswith(tail) and clean
