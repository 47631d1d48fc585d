"""How long a wait lasts before its row is read again."""

from hypothesis import given
from hypothesis import strategies as st

from agentic.runtime.workflow.slices import LAST_SLICE_S, slice_s


def test_waits_grow_and_then_stay() -> None:
    assert [slice_s(number, 1e9) for number in range(6)] == [60, 300, 1800, 21600, 21600, 21600]


@given(number=st.integers(0, 2000), within_s=st.floats(-1e9, 1e9))
def test_a_wait_is_whole_seconds_and_never_much_longer_than_there_is_something_to_wait_for(
    number: int, within_s: float
) -> None:
    waits = slice_s(number, within_s)
    assert 1 <= waits <= LAST_SLICE_S
    assert waits <= max(1, within_s + 1)


def test_a_question_of_30_days_fits_the_steps_a_function_may_have() -> None:
    left, number = 30 * 24 * 3600.0, 0
    while left > 0:
        left -= slice_s(number, left)
        number += 1
    assert 2 * number < 300
