"""A ledger of effects that survives the process that made them: the outside world of a test."""

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, kw_only=True, slots=True)
class Effect:
    """One thing that happened to the world."""

    what: str
    detail: Any
    key: str | None
    pid: int


class EffectLedger:
    """Appends effects to a file, one line each, synced before ``record`` returns. Safe for several processes at once.

    Args:
        path: the file; made on the first effect.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def record(self, what: str, detail: Any = None, *, key: str | None = None) -> bool:
        """Note an effect, as a service without idempotency keys would have it, or as one with keys when ``key`` is given.

        Returns:
            ``True`` when it happened; ``False`` when an effect under the same key had happened before.
        """
        line = json.dumps({"what": what, "detail": detail, "key": key, "pid": os.getpid()}) + "\n"
        descriptor = os.open(self.path, os.O_CREAT | os.O_APPEND | os.O_RDWR, 0o600)
        try:
            os.lockf(descriptor, os.F_LOCK, 0)
            if key is not None and any(effect.key == key for effect in self.effects()):
                return False
            os.write(descriptor, line.encode())
            os.fsync(descriptor)
            return True
        finally:
            os.close(descriptor)

    def effects(self, what: str | None = None) -> Sequence[Effect]:
        """What happened so far, in order; of one kind when asked."""
        if not self.path.exists():
            return []
        lines = [json.loads(line) for line in self.path.read_text().splitlines()]
        return [Effect(**line) for line in lines if what is None or line["what"] == what]

    def count(self, what: str | None = None) -> int:
        """How often it happened."""
        return len(self.effects(what))
