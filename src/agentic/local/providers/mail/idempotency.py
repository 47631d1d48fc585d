"""What an ``Idempotency-Key`` means for one hour: the first answer, success or error, is the answer.

Keys live per grant. The store asks before it acts and records afterwards; nothing here knows about mail.
"""

import hashlib
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

LIFE = timedelta(hours=1)
MAX_KEY_LENGTH = 256


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """An HTTP answer, kept as the bytes that were sent. ``cut``: the line breaks in the middle of it."""

    status: int
    body: bytes
    retry_after: int | None = None
    cut: bool = False


class Verdict(StrEnum):
    """Why a keyed request does not run."""

    INVALID = "api.invalid_idempotency_key"
    MISMATCH = "api.invalid_idempotent_request"
    CONCURRENT = "api.concurrent_idempotent_request"


@dataclass(frozen=True, kw_only=True, slots=True)
class Remembered:
    """One key's entry. ``answer`` is ``None`` while the first request runs."""

    digest: str
    since: datetime
    answer: Answer | None


class Keys:
    """The keys of all grants."""

    def __init__(self) -> None:
        self._entries: dict[tuple[str, str], Remembered] = {}

    def begin(self, grant_id: str, key: str, payload: bytes, now: datetime) -> Answer | Verdict | None:
        """Ask for the key.

        Returns:
            ``None``: the key is now running and the caller must ``finish``, ``forget`` or ``abandon`` it; an ``Answer``: replay it;
            a ``Verdict``: refuse with that type.
        """
        if len(key) > MAX_KEY_LENGTH:
            return Verdict.INVALID
        entry = self._entries.get((grant_id, key))
        if entry is None or now - entry.since >= LIFE:
            self._entries[grant_id, key] = Remembered(digest=digest(payload), since=now, answer=None)
            return None
        if entry.digest != digest(payload):
            return Verdict.MISMATCH
        return entry.answer or Verdict.CONCURRENT

    def finish(self, grant_id: str, key: str, answer: Answer) -> Remembered:
        """Keep the first answer."""
        entry = self._entries[grant_id, key]
        done = Remembered(digest=entry.digest, since=entry.since, answer=answer)
        self._entries[grant_id, key] = done
        return done

    def forget(self, grant_id: str, key: str) -> None:
        """Drop a key whose answer is not to be kept."""
        self._entries.pop((grant_id, key), None)

    def abandon(self, grant_id: str, key: str) -> None:
        """Drop a key whose request died before it had an answer; an answered one stays."""
        entry = self._entries.get((grant_id, key))
        if entry is not None and entry.answer is None:
            del self._entries[grant_id, key]

    def restore(self, grant_id: str, key: str, entry: Remembered) -> None:
        """Put back an entry read from a file."""
        self._entries[grant_id, key] = entry


def digest(payload: bytes) -> str:
    """Of the exact bytes: reordered JSON is another payload."""
    return hashlib.sha256(payload).hexdigest()
