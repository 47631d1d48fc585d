"""Whatever a handler returns becomes plain JSON data, and nothing it can do raises."""

import dataclasses
import datetime
import enum
import uuid
from collections import OrderedDict, deque, namedtuple
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field, SecretStr

from agentic.contract.canonical import canonical
from agentic.contract.encoding import encode
from agentic.contract.normal_form import nfc
from agentic.contract.plain import free_key, plain


@dataclasses.dataclass
class Row:
    name: str
    born: datetime.date


class Stage(enum.Enum):
    ACTIVE = "active"


class Level(enum.IntEnum):
    HIGH = 3


class Person(BaseModel):
    id: uuid.UUID
    row: Row
    family_name: str = Field(alias="familyName")
    password: SecretStr
    internal: str = Field(default="x", exclude=True)


Point = namedtuple("Point", "x y")


class Hostile:
    def __str__(self) -> str:
        raise RuntimeError("no text")


class Faceless:
    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        raise RuntimeError("no class")


class LyingMapping(Mapping[str, int]):
    def __getitem__(self, key: str) -> int:
        raise OSError("gone")

    def __iter__(self) -> Iterator[str]:
        return iter(["a"])

    def __len__(self) -> int:
        return 1


class EndlessMapping(Mapping[int, int]):
    def __getitem__(self, key: int) -> int:
        return key

    def __iter__(self) -> Iterator[int]:
        number = 0
        while True:
            yield number
            number += 1

    def __len__(self) -> int:
        return 2**40


@pytest.mark.guarantee("J4")
def test_every_common_type_has_its_documented_form() -> None:
    answer = {
        "at": datetime.datetime(2026, 1, 2, tzinfo=datetime.UTC),
        "id": uuid.UUID(int=5),
        "sum": Decimal("10.10"),
        "raw": b"\xff\x00",
        "tags": {"b", "a"},
        "row": Row("Ada", datetime.date(1815, 12, 10)),
        3: "int key",
        "err": ValueError("secret text"),
        "stage": Stage.ACTIVE,
        "level": Level.HIGH,
        "took": datetime.timedelta(minutes=1),
        "point": Point(1, 2),
        "queue": deque([1]),
        None: True,
    }
    assert plain(answer) == {
        "at": "2026-01-02T00:00:00+00:00",
        "id": "00000000-0000-0000-0000-000000000005",
        "sum": "10.10",
        "raw": {"__bytes__": 2, "base64": "/wA="},
        "tags": ["a", "b"],
        "row": {"name": "Ada", "born": "1815-12-10"},
        "3": "int key",
        "err": "<unrenderable ValueError>",
        "stage": "active",
        "level": 3,
        "took": 60.0,
        "point": {"x": 1, "y": 2},
        "queue": [1],
        "null": True,
    }


def test_a_model_is_dumped_by_alias_without_its_excluded_and_secret_fields() -> None:
    person = Person(
        id=uuid.UUID(int=1), row=Row("A", datetime.date(2000, 1, 1)), familyName="L", password=SecretStr("hunter22")
    )
    assert plain(person) == {
        "id": "00000000-0000-0000-0000-000000000001",
        "row": {"name": "A", "born": "2000-01-01"},
        "familyName": "L",
        "password": "<unrenderable SecretStr>",
    }


@pytest.mark.guarantee("J4")
def test_a_model_that_contains_itself_ends_and_keeps_its_other_fields() -> None:
    class Node(BaseModel):
        name: str
        parts: list[Any] = []

    node = Node(name="root")
    node.parts.append(node)
    answer = plain(node)
    assert isinstance(answer, dict)
    assert answer["name"] == "root"
    assert "<unrenderable: Node contains itself>" in encode(answer).decode()


@pytest.mark.guarantee("J4")
@pytest.mark.parametrize(
    "make", [Hostile, Faceless, LyingMapping, object, lambda: iter([]), lambda: print, lambda: int]
)
def test_what_cannot_be_read_becomes_a_placeholder_naming_its_type(make: Callable[[], object]) -> None:
    value = make()
    assert plain({"before": 1, "it": [value], "after": 2}) == {
        "before": 1,
        "it": [f"<unrenderable {type(value).__name__}>"],
        "after": 2,
    }


@pytest.mark.guarantee("J4")
def test_a_value_that_contains_itself_ends() -> None:
    loop: list[Any] = [1]
    loop.append(loop)
    assert plain(loop) == [1, "<unrenderable: list contains itself>"]


def test_a_value_met_twice_side_by_side_is_shown_twice() -> None:
    shared = {"a": 1}
    assert plain([shared, shared]) == [{"a": 1}, {"a": 1}]


@pytest.mark.guarantee("J4")
def test_a_value_nested_ten_thousand_deep_ends_with_a_placeholder() -> None:
    value: Any = 1
    for _ in range(10_000):
        value = [value]
    assert "nested more than 64 deep" in encode(plain(value)).decode()


@pytest.mark.guarantee("J4")
def test_an_endless_or_exploding_value_stops_at_the_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agentic.contract.plain.MAX_NODES", 1_000)
    assert "too many values" in encode(plain(EndlessMapping())).decode()
    bomb: Any = "x"
    for _ in range(40):
        bomb = [bomb, bomb]
    assert "too many values" in encode(plain(bomb)).decode()


def test_numbers_json_does_not_have_become_text() -> None:
    answer = {"score": float("nan"), "max": float("inf"), "min": -float("inf")}
    assert plain(answer) == {"score": "NaN", "max": "Infinity", "min": "-Infinity"}
    assert plain(2**10_000) == "<unrenderable int of 10001 bits>"


@pytest.mark.guarantee("J4")
def test_characters_postgres_or_utf8_refuse_become_visible_and_no_value_is_lost() -> None:
    assert plain("%PDF\0\1") == "%PDF\u2400\1"
    assert plain("\\u0000") == "\\u0000"
    assert plain("\ud83d\ude00 \ud800") == "\U0001f600 \ufffd"
    assert plain({"k\0ey": 1, "k\u2400ey": 2, 1: "a", "1": "b"}) == {
        "k\u2400ey": 1,
        "k\u2400ey (2)": 2,
        "1": "a",
        "1 (2)": "b",
    }


@pytest.mark.guarantee("B4")
def test_a_set_is_shown_in_the_same_order_in_every_process() -> None:
    assert plain({"b", "a", 1, None, (2, 3)}) == ["a", "b", 1, [2, 3], None]


def test_a_large_block_of_bytes_is_named_by_its_length() -> None:
    assert plain(b"x" * 5_000) == {"__bytes__": 5_000}


def test_subclasses_of_plain_types_become_the_plain_type() -> None:
    class Text(str):
        def __len__(self) -> int:
            raise RuntimeError

    class Whole(int):
        pass

    answer = plain({"t": Text("a"), "n": Whole(3), "o": OrderedDict(z=1)})
    assert answer == {"t": "a", "n": 3, "o": {"z": 1}}
    assert isinstance(answer, dict)
    assert type(answer["t"]) is str
    assert type(answer["n"]) is int


anything = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters())
    | st.binary()
    | st.decimals()
    | st.datetimes()
    | st.uuids()
    | st.builds(Hostile)
    | st.builds(ValueError, st.text()),
    lambda inner: (
        st.lists(inner)
        | st.tuples(inner)
        | st.dictionaries(st.text(st.characters()) | st.integers() | st.none(), inner)
    ),
    max_leaves=20,
)


@pytest.mark.guarantee("J4")
@given(anything)
def test_any_answer_can_be_encoded_and_stays_the_same_when_made_plain_again(value: object) -> None:
    once = plain(value)
    assert encode(plain(once)) == encode(once)
    assert b"\0" not in encode(once)


@given(anything)
def test_any_answer_without_negative_zero_has_a_digest(value: object) -> None:
    once = plain(value)
    if b"-0.0" not in encode(once):
        try:
            normal = nfc(once)
        except ValueError:
            return  # two keys are one text; the form says so
        assert canonical(normal)


class _CountedLooks(dict[str, int]):
    looks = 0

    def __contains__(self, key: object) -> bool:
        self.looks += 1
        return super().__contains__(key)


def test_keys_that_become_equal_are_numbered_in_order() -> None:
    taken: dict[str, int] = {}
    for number in range(100):
        taken[free_key("k", taken)] = number
    assert list(taken) == ["k", *(f"k ({number})" for number in range(2, 101))]


def test_many_keys_that_become_equal_cost_a_few_looks_each() -> None:
    taken = _CountedLooks({"k": 1, **{f"k ({number})": number for number in range(2, 100_001)}})
    assert free_key("k", taken) == "k (100001)"
    assert taken.looks < 50


def test_a_number_somebody_else_took_is_passed_over() -> None:
    assert free_key("k", {"k": 1, "k (2)": 2, "k (3)": 3, "k (5)": 5}) not in {"k", "k (2)", "k (3)", "k (5)"}
