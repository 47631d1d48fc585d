"""Times and durations as people read them, from the ISO texts of the views."""

from datetime import UTC, datetime


def moment(text: str | None) -> str:
    """To the second, in the zone it was written in."""
    return "" if text is None else datetime.fromisoformat(text).isoformat(sep=" ", timespec="seconds")


def minute(text: str) -> str:
    """To the minute, in UTC; for listings, where room is short."""
    return datetime.fromisoformat(text).astimezone(UTC).strftime("%Y-%m-%d %H:%MZ")


def duration(start: str, end: str | None) -> str:
    """From one time to another; empty while it lasts."""
    if end is None:
        return ""
    took_s = (datetime.fromisoformat(end) - datetime.fromisoformat(start)).total_seconds()
    return f"{took_s:.1f} s" if took_s >= 1 else f"{took_s * 1000:.0f} ms"
