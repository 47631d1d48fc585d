"""The store's file: one JSON line per finished send, so that message and key survive this process together or not at all.

Flushed to the operating system, not to the disk: it outlives a killed process, not a power cut. Attempts and faults are not kept.
Emails are private, so the file is its owner's alone.
"""

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from pydantic import ValidationError

from agentic.contract.errors import AgenticError
from agentic.local.providers.mail.idempotency import Answer, Remembered
from agentic.local.providers.mail.messages import Message


class StoreUnreadable(AgenticError):
    """The file is not a mail store's."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Line:
    """One finished send."""

    grant_id: str
    message: Message | None
    key: str | None
    remembered: Remembered | None


def write(path: Path, line: Line) -> None:
    """Append one line in one write."""
    entry = line.remembered
    data = {
        "grant_id": line.grant_id,
        "message": line.message.model_dump(mode="json", by_alias=True) if line.message else None,
        "key": line.key,
        "remembered": None
        if entry is None or entry.answer is None
        else {
            "digest": entry.digest,
            "since": entry.since.isoformat(),
            "status": entry.answer.status,
            "retry_after": entry.answer.retry_after,
            "body": entry.answer.body.decode(),
        },
    }
    with open(path, "a", encoding="utf-8", opener=_for_its_owner) as file:
        file.write(json.dumps(data) + "\n")


def _for_its_owner(path: str, flags: int) -> int:
    descriptor = os.open(path, flags, 0o600)
    os.fchmod(descriptor, 0o600)  # one that was there already, with wider rights
    return descriptor


def read(path: Path) -> Iterator[Line]:
    """The lines in order; a last line cut off by a crash was never answered and is cut away.

    Raises:
        StoreUnreadable: a whole line is not one of ours; names file and line.
    """
    if not path.exists():
        return
    raw = path.read_bytes()
    whole, _, torn = raw.rpartition(b"\n")
    if torn:
        path.write_bytes(whole + b"\n" if whole else b"")
    for number, text in enumerate(whole.splitlines(), start=1):
        try:
            data = json.loads(text)
            kept = data["remembered"]
            remembered = kept and Remembered(
                digest=kept["digest"],
                since=datetime.fromisoformat(kept["since"]),
                answer=Answer(status=kept["status"], body=kept["body"].encode(), retry_after=kept["retry_after"]),
            )
            message = data["message"] and Message.model_validate(data["message"])
            yield Line(grant_id=data["grant_id"], message=message, key=data["key"], remembered=remembered)
        except (ValueError, KeyError, TypeError, ValidationError) as problem:
            raise StoreUnreadable(f"{path}, line {number}: not a line of a mail store; move the file away") from problem
