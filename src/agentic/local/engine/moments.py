"""The protocol's times and durations: `30s`, `1h30m`, RFC 3339 stamps, `retry-after` headers."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}
_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|[smhdw])")


def parse_duration(text: str) -> timedelta:
    """A duration as the SDK writes it, such as `20s` or `1h30m`.

    Raises:
        ValueError: it is not one.
    """
    if not re.fullmatch(f"(?:{_PART.pattern})+", text):
        raise ValueError(f"{text!r} is no duration")
    try:
        return timedelta(seconds=sum(float(count) * _UNITS[unit] for count, unit in _PART.findall(text)))
    except OverflowError as long:
        raise ValueError(f"{text!r} is longer than can be counted") from long


def parse_moment(text: str) -> datetime:
    """An RFC 3339 time stamp; without an offset it is UTC.

    Raises:
        ValueError: it is not one.
    """
    moment = datetime.fromisoformat(text)
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


def parse_retry_after(text: str | None, *, now: datetime) -> datetime | None:
    """When a `retry-after` header asks for the next call: a time stamp, an HTTP date or seconds; None for neither."""
    if not text:
        return None
    if text.strip().isdecimal():
        try:
            return now + timedelta(seconds=int(text))
        except (OverflowError, ValueError):  # beyond the year 9999, or more digits than Python reads
            return None
    for parse in (parse_moment, parsedate_to_datetime):
        try:
            moment = parse(text)
        except ValueError:
            continue
        return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    return None


def unix_ms(moment: datetime) -> int:
    """Milliseconds since 1970, as events carry them."""
    return int(moment.timestamp() * 1000)
