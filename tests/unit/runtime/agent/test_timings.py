"""How long a run waits before it tries again."""

import pytest

from agentic.runtime.agent.timings import Timings, fault_wait_s, provider_wait_s

TIMINGS = Timings(model_retry_s=15, model_retry_max_s=900, fault_retry_s=5)


def test_the_wait_for_a_provider_that_is_down_doubles_up_to_its_bound() -> None:
    waits = [provider_wait_s(TIMINGS, failures, asked_s=None) for failures in (0, 1, 2, 5, 6, 7, 10_000)]
    assert waits == [15, 30, 60, 480, 900, 900, 900]


@pytest.mark.parametrize(("asked_s", "waits_s"), [(0.0, 0), (3.5, 3.5), (20.0, 20), (1e12, 900), (float("inf"), 900)])
def test_what_a_provider_asks_for_is_followed_within_the_bound(asked_s: float, waits_s: float) -> None:
    assert provider_wait_s(TIMINGS, 0, asked_s=asked_s) == waits_s


@pytest.mark.parametrize(("asked_s", "waits_s"), [(0.0, 15), (3.5, 15), (20.0, 20), (1e12, 900)])
def test_a_provider_that_asks_to_be_asked_again_at_once_is_not_asked_without_end(
    asked_s: float, waits_s: float
) -> None:
    assert provider_wait_s(TIMINGS, 4, asked_s=asked_s) == waits_s


def test_the_wait_after_a_fault_doubles_with_each_attempt() -> None:
    assert [fault_wait_s(TIMINGS, attempt) for attempt in (0, 1, 2, 5)] == [5, 5, 10, 80]
