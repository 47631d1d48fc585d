"""When a cron trigger fires next: five fields, lists, ranges, steps, names, an optional time zone.

`TZ=Area/City` in front of the fields means local wall-clock time there; without it, UTC. A local time that a clock
change skips does not fire that day, one that occurs twice fires once.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from agentic.local.engine.errors import CronError

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_HORIZON_DAYS = 366 * 8  # past the longest gap between two 29ths of February


@dataclass(frozen=True, kw_only=True, slots=True)
class Cron:
    """A cron expression, read."""

    text: str
    zone: ZoneInfo
    minutes: tuple[int, ...]
    hours: tuple[int, ...]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    either_day: bool

    def next_after(self, moment: datetime) -> datetime:
        """The first time it fires strictly after `moment`, in UTC.

        Raises:
            CronError: it never fires, such as on the 30th of February.
        """
        day = moment.astimezone(self.zone).date()
        for _ in range(_HORIZON_DAYS):
            if self._on(day):
                for hour in self.hours:
                    for minute in self.minutes:
                        local = datetime(day.year, day.month, day.day, hour, minute, tzinfo=self.zone)
                        fires = local.astimezone(UTC)
                        if fires > moment and fires.astimezone(self.zone).replace(fold=0) == local:
                            return fires
            day += timedelta(days=1)
        raise CronError(expression=self.text, reason="it never fires")

    def _on(self, day: date) -> bool:
        if day.month not in self.months:
            return False
        by_day, by_weekday = day.day in self.days, day.isoweekday() % 7 in self.weekdays
        # cron's old rule: when both day fields are restricted, either of them is enough.
        return by_day or by_weekday if self.either_day else by_day and by_weekday


@functools.lru_cache(maxsize=128)
def parse_cron(text: str) -> Cron:
    """Read a cron expression.

    Raises:
        CronError: it is not one.
    """
    first, _, rest = text.strip().partition(" ")
    zone_name, fields = (first[3:], rest.split()) if first.startswith("TZ=") else ("UTC", text.split())
    try:
        zone = ZoneInfo(zone_name)
    except (ZoneInfoNotFoundError, ValueError) as unknown:
        raise CronError(expression=text, reason=f"{zone_name!r} is no time zone") from unknown
    if len(fields) != 5:
        raise CronError(expression=text, reason=f"it has {len(fields)} fields")
    try:
        minutes, hours = _field(fields[0], 0, 59), _field(fields[1], 0, 23)
        days, months = _field(fields[2], 1, 31), _field(fields[3], 1, 12, _MONTHS)
        weekdays = {day % 7 for day in _field(fields[4], 0, 7, _DAYS)}
    except ValueError as wrong:
        raise CronError(expression=text, reason=str(wrong)) from wrong
    return Cron(
        text=text,
        zone=zone,
        minutes=tuple(sorted(minutes)),
        hours=tuple(sorted(hours)),
        days=frozenset(days),
        months=frozenset(months),
        weekdays=frozenset(weekdays),
        either_day=not fields[2].startswith("*") and not fields[4].startswith("*"),
    )


def _field(text: str, low: int, high: int, names: tuple[str, ...] = ()) -> set[int]:
    def number(word: str) -> int:
        if word.lower() in names:
            return names.index(word.lower()) + low
        if not word.isdecimal() or not low <= int(word) <= high:
            raise ValueError(f"{word!r} is not between {low} and {high}")
        return int(word)

    values: set[int] = set()
    for part in text.split(","):
        span, _, step = part.partition("/")
        if "/" in part and (not step.isdecimal() or int(step) == 0):
            raise ValueError(f"{part!r} has no whole step")
        if span == "*":
            first, last = low, high
        elif "-" in span:
            first, last = (number(word) for word in span.split("-", 1))
        else:
            first = number(span)
            last = high if step else first
        if first > last:
            raise ValueError(f"{span!r} runs backwards")
        values.update(range(first, last + 1, int(step or 1)))
    return values
