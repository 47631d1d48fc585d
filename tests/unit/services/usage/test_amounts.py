"""Amounts as people write them, and sums of them."""

from decimal import Decimal

import pytest

from agentic.services.usage.amounts import exact_sum, read_amount


@pytest.mark.parametrize(
    ("text", "amount"), [("0", "0"), (" 0.25 ", "0.25"), ("2.5e-7", "0.00000025"), ("1e3", "1000"), ("1_000", "1000")]
)
def test_an_amount_is_the_number_that_was_written(text: str, amount: str) -> None:
    assert read_amount(text) == Decimal(amount)


@pytest.mark.parametrize(
    "text", ["", "x", "0,25", "nan", "sNaN", "inf", "-inf", "-0.01", "1e31", "1e-31", "1e999999999"]
)
def test_what_is_no_amount_of_money_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is no amount"):
        read_amount(text)


@pytest.mark.guarantee("M3")
def test_a_sum_keeps_every_digit() -> None:
    large, small = Decimal(10) ** 29, Decimal(10) ** -30
    assert exact_sum([large, small, large.copy_negate()]) == small
    assert exact_sum([]) == 0
