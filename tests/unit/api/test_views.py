"""Rows as JSON: the same value for every reader, and none of them rounded."""

import json
from datetime import UTC, datetime
from decimal import Decimal
from uuid import UUID

import pytest

from agentic.api.views import plain, tree_view
from agentic.contract.principal import Role
from agentic.services.runs.models import RunTree

AT = datetime(2031, 5, 6, 7, 8, 9, 123456, tzinfo=UTC)
ID = UUID("11111111-2222-4333-8444-555555555555")


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (ID, str(ID)),
        (AT, "2031-05-06T07:08:09.123456+00:00"),
        (Decimal("0.10"), "0.10"),
        (Role.ADMIN, "admin"),
        (True, True),
        ({"a": [ID, {"b": AT}]}, {"a": [str(ID), {"b": "2031-05-06T07:08:09.123456+00:00"}]}),
    ],
)
def test_a_column_becomes_json(value: object, expected: object) -> None:
    assert plain(value) == expected
    assert json.loads(json.dumps(plain(value))) == expected
    assert type(plain(Role.ADMIN)) is str


def test_a_type_that_no_column_has_is_an_error_not_a_guess() -> None:
    with pytest.raises(TypeError, match="bytes"):
        plain(b"secret")


@pytest.mark.guarantee("M3")
def test_money_of_a_run_is_an_exact_decimal_and_tokens_are_counts() -> None:
    cost = {
        "cost": Decimal("0.1000000000000000055"),
        "input_tokens": Decimal(300),
        "output_tokens": Decimal(60),
        "rows": 3,
    }
    tree = RunTree(run={"id": ID}, spans=[], decisions=[], approvals=[], effects=[], uncertain=[], cost=cost)
    assert tree_view(tree)["cost"] == {
        "cost": "0.1000000000000000055",
        "input_tokens": 300,
        "output_tokens": 60,
        "rows": 3,
    }
