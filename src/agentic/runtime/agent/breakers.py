"""Circuit breakers of a run: one counter over its calls, kept in the run's row (ADR 0028). Pure.

The same call with the same arguments, again and again, is a loop unless what it observes changes. A tool may say what it observed
(an evidence key, a digest it computes from its result, never from its arguments); a new observation restarts the count, a bounded
number of times. One call before the limit the model gets a turn without tools, to answer from what it has.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

MAX_IDENTICAL_DENIALS = 3
"""The denial that ends the run."""
MAX_IDENTICAL_CALLS = 5
"""The call that ends the run, when nothing new was observed before it."""
MAX_RESTARTS = 32
"""Restarts of a count by new evidence, over all calls of a run: at most 36 identical observations of one changing thing."""
MAX_TRACKED = 512
"""Different calls that are counted; a run that makes more is bounded by its ceilings."""


class Trip(StrEnum):
    """Why a breaker ends the run; the run's error code."""

    DENIED = "tool_policy_denied"
    LOOP = "tool_loop_detected"


@dataclass(frozen=True, kw_only=True, slots=True)
class Count:
    """What is known of one call: tool and arguments."""

    calls: int = 0
    denials: int = 0
    evidence: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Breakers:
    """The counts of a run. A value: every change gives a new one."""

    counts: Mapping[str, Count] = field(default_factory=dict)
    restarts: int = 0
    turn: int = 0
    """The last turn of the model whose calls are counted. It is stored with them, so no turn is counted twice."""

    def proposed(self, turn: int, keys: Sequence[str]) -> "Breakers | Trip":
        """Count the calls of one turn before any of them is dispatched; the trip when one is too many, or none was allowed.

        Args:
            turn: its number, from 1; a turn that is counted already changes nothing.
            keys: of its calls, in the model's order.
        """
        if turn <= self.turn:
            return self
        if keys and self.must_answer:
            return Trip.LOOP
        moved = replace(self, turn=turn)
        for key in keys:
            counted = moved.called(key)
            if isinstance(counted, Trip):
                return counted
            moved = counted
        return moved

    def called(self, key: str) -> "Breakers | Trip":
        """Count a call before it is dispatched; the trip when it is one too many."""
        count = self.counts.get(key, Count())
        if count.calls + 1 >= MAX_IDENTICAL_CALLS:
            return Trip.LOOP
        return self._with(key, replace(count, calls=count.calls + 1))

    def denied(self, key: str) -> "Breakers | Trip":
        """Count a denial of a call; the trip when it was the last one allowed."""
        count = self.counts.get(key, Count())
        if count.denials + 1 >= MAX_IDENTICAL_DENIALS:
            return Trip.DENIED
        return self._with(key, replace(count, denials=count.denials + 1))

    def observed(self, key: str, evidence: str | None) -> "Breakers":
        """Take a successful result's evidence into account; one without evidence keeps counting."""
        count = self.counts.get(key, Count())
        if evidence is None or evidence == count.evidence:
            return self
        restarts = count.evidence is not None and count.calls > 1 and self.restarts < MAX_RESTARTS
        noted = replace(count, evidence=evidence, calls=1 if restarts else count.calls)
        moved = self._with(key, noted)
        return replace(moved, restarts=moved.restarts + 1) if restarts else moved

    @property
    def must_answer(self) -> bool:
        """Whether the next turn of the model is without tools: some call is one below its limit."""
        return any(count.calls >= MAX_IDENTICAL_CALLS - 1 for count in self.counts.values())

    def _with(self, key: str, count: Count) -> "Breakers":
        if key not in self.counts and len(self.counts) >= MAX_TRACKED:
            return self
        return replace(self, counts={**self.counts, key: count})

    def dump(self) -> dict[str, Any]:
        """As the run's row keeps it."""
        counts = {
            key: [count.calls, count.denials, *([count.evidence] if count.evidence else [])]
            for key, count in self.counts.items()
        }
        return {"counts": counts, "restarts": self.restarts, "turn": self.turn} if counts or self.turn else {}

    @classmethod
    def load(cls, row: Mapping[str, Any]) -> "Breakers":
        """Read what ``dump`` wrote."""
        counts = {
            key: Count(calls=value[0], denials=value[1], evidence=value[2] if len(value) > 2 else None)
            for key, value in row.get("counts", {}).items()
        }
        return cls(counts=counts, restarts=row.get("restarts", 0), turn=row.get("turn", 0))
