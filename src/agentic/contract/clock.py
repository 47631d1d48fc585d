"""Time as a port. Durable decisions use the database clock; this one serves deadlines inside a process and tests."""

import time
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """What code asks for the time."""

    def now(self) -> datetime:
        """The current time, with a zone."""
        ...

    def monotonic(self) -> float:
        """Seconds that never go back, for deadlines."""
        ...


class SystemClock:
    """The machine's clock."""

    def now(self) -> datetime:
        """The current time in UTC."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Seconds that never go back."""
        return time.monotonic()
