"""A clock that moves when it is told to. It serves deadlines inside a process; leases and expiry follow the database's clock."""

from datetime import UTC, datetime, timedelta


class FakeClock:
    """Implements ``Clock``.

    Args:
        now: the time it starts at; with a zone.
    """

    def __init__(self, now: datetime = datetime(2026, 1, 5, 9, 0, tzinfo=UTC)) -> None:
        self._start = now
        self._passed = 0.0

    def now(self) -> datetime:
        """The start plus what has passed."""
        return self._start + timedelta(seconds=self._passed)

    def monotonic(self) -> float:
        """Seconds that have passed."""
        return self._passed

    def advance(self, seconds: float) -> None:
        """Let time pass.

        Raises:
            ValueError: for a negative number; time does not go back.
        """
        if seconds < 0:
            raise ValueError("time does not go back")
        self._passed += seconds
