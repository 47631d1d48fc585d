"""When the next start is in time: evenly spaced starts with a burst, as a pure function of one kept moment (GCRA)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from agentic.local.engine.flow import Rate


@dataclass(frozen=True, kw_only=True, slots=True)
class Slot:
    """The place of the next start.

    Attributes:
        at: the earliest moment it may come; `now` where it is in time.
        used_until: what is to be kept when it is taken: the moment up to which the rate is used up.
    """

    at: datetime
    used_until: datetime


def next_slot(rate: Rate, *, used_until: datetime | None, now: datetime) -> Slot:
    """Find the place of one more start.

    Args:
        rate: how many starts a period, and how many at once.
        used_until: what the last taken slot left; None where none was taken.
        now: the present moment.
    """
    apart = rate.period / rate.limit
    taken = max(used_until or now, now) + apart
    return Slot(at=max(now, taken - apart * (rate.burst + 1)), used_until=taken)
