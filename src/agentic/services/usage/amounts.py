"""Amounts of money as people write and read them: decimals, never floats."""

from collections.abc import Iterable
from decimal import Context, Decimal, Inexact, InvalidOperation

from agentic.services.usage.pricing import countable

_EXACT = Context(prec=400, traps=[Inexact])
"""A sum that would lose a digit raises; Python's own context rounds at 28."""


def exact_sum(amounts: Iterable[Decimal]) -> Decimal:
    """The sum, to the last digit (M3)."""
    total = Decimal(0)
    for amount in amounts:
        total = _EXACT.add(total, amount)
    return total


def read_amount(text: str) -> Decimal:
    """The amount a person wrote, such as ``0.25`` or ``1.5e-7``.

    Raises:
        ValueError: it is no number, negative, not finite, or has more than 30 digits before or after the point.
    """
    try:
        amount = Decimal(text.strip())
    except InvalidOperation as error:
        raise ValueError(f"{text!r} is no amount; write a number such as 0.25") from error
    if not countable(amount):
        raise ValueError(
            f"{text!r} is no amount; it is a finite number, not negative, of at most 30 digits on each side"
        )
    return amount
