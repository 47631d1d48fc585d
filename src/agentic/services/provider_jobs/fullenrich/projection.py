"""The provider's rows as one line for each contact that was asked for. Pure.

A row belongs to the contact whose ref it echoes, exactly, and to nobody by its place, its name or its domain. What the provider wrote
reaches nobody but as an address and its grade, both of bounded length.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from pydantic import BaseModel

MAX_EMAIL_BYTES = 254
MAX_STATUS_CHARS = 32

Outcome = Literal["found", "not_found", "missing", "duplicate", "malformed"]
Verification = Literal["verified", "likely", "accepts_all", "invalid", "unverified"]
_GRADES: Final[Mapping[str, tuple[Verification, Literal["high", "medium", "low"]]]] = {
    "DELIVERABLE": ("verified", "high"),
    "HIGH_PROBABILITY": ("likely", "medium"),
    "CATCH_ALL": ("accepts_all", "low"),
    "INVALID": ("invalid", "low"),
    "INVALID_DOMAIN": ("invalid", "low"),
}


class ContactResult(BaseModel):
    """What was found for one contact."""

    ref: str
    outcome: Outcome
    """``missing``: the provider has no row of it; ``duplicate``: several, so none counts; ``malformed``: one that cannot be read."""
    email: str | None = None
    provider_status: str | None = None
    """The provider's own grade."""
    confidence: Literal["high", "medium", "low"] | None = None
    verification: Verification = "unverified"


@dataclass(frozen=True, kw_only=True, slots=True)
class Projection:
    """All lines, and how many rows belong to none."""

    results: Sequence[ContactResult] = ()
    unknown_rows: int = 0
    malformed_rows: int = 0


def projected(result: Any, refs: Sequence[str]) -> Projection:
    """One line for each ref, in the order of the request.

    Args:
        result: the stored report; ``None`` when the job ended without one.
        refs: of the request; empty for a job that kept none, whose rows then belong to nobody.
    """
    rows: defaultdict[str, list[Mapping[str, Any]]] = defaultdict(list)
    unknown = malformed = 0
    wanted = set(refs)
    for row in _rows(result):
        ref = _ref(row)
        if ref is None or not isinstance(row, Mapping):
            malformed += 1
        elif ref in wanted:
            rows[ref].append(row)
        else:
            unknown += 1
    return Projection(results=[_line(ref, rows[ref]) for ref in refs], unknown_rows=unknown, malformed_rows=malformed)


def _rows(result: Any) -> Sequence[Any]:
    data = result.get("data") if isinstance(result, Mapping) else None
    return data if isinstance(data, list) else ()


def _ref(row: Any) -> str | None:
    custom = row.get("custom") if isinstance(row, Mapping) else None
    ref = custom.get("ref") if isinstance(custom, Mapping) else None
    return ref if isinstance(ref, str) else None


def _line(ref: str, rows: Sequence[Mapping[str, Any]]) -> ContactResult:
    if not rows:
        return ContactResult(ref=ref, outcome="missing")
    if len(rows) > 1:
        return ContactResult(ref=ref, outcome="duplicate")
    info = rows[0].get("contact_info")
    if info is not None and not isinstance(info, Mapping):
        return ContactResult(ref=ref, outcome="malformed")
    for entry in _addresses(info or {}):
        email, status = entry.get("email"), entry.get("status")
        if not _presentable(email):
            return ContactResult(ref=ref, outcome="malformed")
        grade = status if isinstance(status, str) and len(status) <= MAX_STATUS_CHARS and status.isascii() else None
        verification, confidence = _GRADES.get(grade or "", ("unverified", None))
        return ContactResult(
            ref=ref,
            outcome="found",
            email=email,
            provider_status=grade,
            confidence=confidence,
            verification=verification,
        )
    return ContactResult(ref=ref, outcome="not_found")


def _addresses(info: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Entries that hold an address, the most probable first. A miss is null, empty, or an object without one."""
    others = info.get("work_emails")
    for entry in (info.get("most_probable_work_email"), *(others if isinstance(others, list) else ())):
        if isinstance(entry, Mapping) and entry.get("email"):
            yield entry


def _presentable(email: object) -> bool:
    return isinstance(email, str) and "@" in email and email.isprintable() and len(email.encode()) <= MAX_EMAIL_BYTES
