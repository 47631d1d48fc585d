"""The places that a rate gives out: never too many in a period, never later than need be."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from agentic.local.engine.flow import Rate
from agentic.local.engine.rates import next_slot

NOW = datetime(2026, 5, 4, 12, 0, tzinfo=UTC)
RATES = st.builds(
    Rate,
    limit=st.integers(1, 20),
    period=st.integers(1, 3600).map(lambda seconds: timedelta(seconds=seconds)),
    burst=st.integers(0, 10),
    key=st.none(),
)
STEPS = st.lists(st.integers(0, 10_000).map(lambda millis: timedelta(milliseconds=millis)), min_size=1, max_size=60)


@given(RATES, STEPS)
def test_places_are_in_order_and_no_period_holds_more_than_the_limit_and_the_burst(
    rate: Rate, steps: list[timedelta]
) -> None:
    now, used_until, places = NOW, None, []
    for step in steps:
        now += step
        slot = next_slot(rate, used_until=used_until, now=now)
        used_until = slot.used_until
        assert slot.at >= now
        places.append(slot.at)
    assert places == sorted(places)
    for first in places:
        inside = [place for place in places if first <= place < first + rate.period]
        assert len(inside) <= rate.limit + rate.burst + 1  # the one more is rounding at the edge of the period


@given(RATES)
def test_a_rate_that_rested_lets_its_burst_and_one_more_through_at_once(rate: Rate) -> None:
    used_until, at_once = None, 0
    while (slot := next_slot(rate, used_until=used_until, now=NOW)).at == NOW:
        used_until, at_once = slot.used_until, at_once + 1
        assert at_once <= rate.burst + 1
    assert at_once == rate.burst + 1
    later = slot.at
    assert later - NOW <= rate.period / rate.limit
    assert next_slot(rate, used_until=used_until, now=later).at == later
