"""What the journal does, as a dictionary: rows by the call's number, and what must have been recorded of each.

The state machine beside Postgres asks both and compares; nothing in here knows of a database.
"""

from collections import defaultdict
from dataclasses import dataclass, field
from typing import Literal

from agentic.services.tools.ports import Claim, JournalRow

RECORDED = {"complete": "completed", "release": "released", "hold": "held", "uncertain": "uncertain"}
"""The line in the record of effects, by how a call ends."""


@dataclass(kw_only=True)
class Row:
    """What the model knows of one row of the journal."""

    state: Literal["processing", "completed", "uncertain"] = "processing"
    request_hash: str
    epoch: int
    attempt: int = 1
    repeats: int = 0
    leased: bool = True
    sent: bool
    forgotten: bool = False
    """The vendor no longer remembers the key."""
    output: bytes | None = None

    @property
    def stands(self) -> str:
        """The state, with the lease."""
        return self.state if self.state != "processing" else "led" if self.leased else "stale"

    def free_for(self, seen: JournalRow | None, request_hash: str) -> bool:
        """Whether a worker that saw ``seen`` may take it over."""
        if self.state != "processing" or self.leased or self.request_hash != request_hash or seen is None:
            return False
        return (seen.epoch, seen.attempt) == (self.epoch, self.attempt)


@dataclass(kw_only=True)
class JournalModel:
    """The model: rows by slot, and what must have been recorded of each."""

    rows: dict[int, Row] = field(default_factory=dict)
    last_epoch: dict[int, int] = field(default_factory=dict)
    effects: dict[int, list[tuple[str, int, int]]] = field(default_factory=lambda: defaultdict(list))

    def owned(self, slot: int, claim: Claim) -> Row | None:
        """The row, while this claim still owns it."""
        row = self.rows.get(slot)
        if row is None or row.state != "processing":
            return None
        return row if (row.epoch, row.attempt) == (claim.epoch, claim.attempt) else None

    def record(self, slot: int, kind: str) -> None:
        """One line in the record of effects."""
        self.effects[slot].append((kind, self.rows[slot].epoch, self.rows[slot].attempt))

    def work(self, slot: int, what: str, output: bytes) -> None:
        """What a statement of the claim's owner does."""
        row = self.rows[slot]
        if what in RECORDED:
            self.record(slot, RECORDED[what])
        match what:
            case "mark":
                row.sent = True
            case "repeat":
                row.repeats += 1
            case "complete":
                row.state, row.output = "completed", output
            case "release":
                del self.rows[slot]
            case "uncertain":
                row.state = "uncertain"

    def settle(self, slot: int, *, happened: bool) -> None:
        """What an operator's word does."""
        self.record(slot, "confirmed" if happened else "denied")
        if happened:
            self.rows[slot].state = "completed"
        else:
            del self.rows[slot]
