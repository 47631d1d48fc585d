"""One vendor answer as plain data, and what its ``Retry-After`` asks for. What a status means is the handler's to say."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime


@dataclass(frozen=True, kw_only=True, slots=True)
class Reply:
    """A whole HTTP answer.

    Attributes:
        status: any status, 3xx included: redirects are never followed.
        headers: names in lower case; values of a repeated name joined by ``", "``.
        body: the bytes as they came, at most the client's ``max_body_bytes``.
        truncated: the answer was longer; ``body`` is its beginning. The status still is the vendor's definite word.
    """

    status: int
    headers: Mapping[str, str]
    body: bytes
    truncated: bool = False

    def retry_after_s(self, now: datetime) -> float | None:
        """Seconds the vendor asks to wait, never negative; ``None`` when it does not say or says it unreadably.

        Args:
            now: the current time with a zone, for answers that name a date.
        """
        value = self.headers.get("retry-after", "").strip()
        if value.isascii() and value.isdigit():
            return float(value)
        try:
            moment = parsedate_to_datetime(value)
        except ValueError:
            return None
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        return max(0.0, (moment - now).total_seconds())
