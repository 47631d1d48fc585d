"""What the breakers know while a segment runs: calls counted before they are dispatched, results counted with their answers.

The counts change in the same append as what they count, so a crash or an approval between two segments changes nothing about them.
The counting itself is ``breakers``.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, assert_never

from agentic.contract.errors import RunEnded
from agentic.contract.results import ErrorCode, ToolResult
from agentic.runtime.agent.breakers import MAX_IDENTICAL_CALLS, MAX_IDENTICAL_DENIALS, Breakers, Trip
from agentic.services.runs.models import ProposedCall
from agentic.services.tools.keys import repetition_key

DENIALS = frozenset({ErrorCode.DENIED, ErrorCode.REJECTED, ErrorCode.EXPIRED})
"""Answers that say no to the call itself: policy, a person, or a person's silence."""


@dataclass(frozen=True, kw_only=True, slots=True)
class _Answer:
    call: ProposedCall
    result: ToolResult
    evidence: str | None


class Repeats:
    """The breakers of one run, as one segment moves them.

    Args:
        row: the counts as the run's row holds them.
    """

    def __init__(self, row: Mapping[str, Any]) -> None:
        self._breakers = Breakers.load(row)
        self._changed = False
        self._waiting: list[_Answer] = []

    @property
    def must_answer(self) -> bool:
        """Whether the model's next turn is to answer from what it has, without a call."""
        return self._breakers.must_answer

    def proposed(self, turn: int, calls: Sequence[ProposedCall]) -> None:
        """Count the calls of a turn, once in its life, however often the turn is taken up.

        Raises:
            RunEnded: one call is one too many, or the turn was to answer; none of them may be dispatched.
        """
        if self._breakers.must_answer:
            why = "the model was told to answer without tools, because it was repeating itself, and called a tool again"
        else:
            why = f"the same call was proposed {MAX_IDENTICAL_CALLS} times and nothing new was observed in between"
        self._move(self._breakers.proposed(turn, [_key(call) for call in calls]), why)

    def answered(self, call: ProposedCall, result: ToolResult, evidence: str | None) -> None:
        """Remember a result until its answer is in the log; see ``settle``."""
        self._waiting.append(_Answer(call=call, result=result, evidence=evidence))

    def settle(self) -> None:
        """Count the results whose answers the log now holds.

        Raises:
            RunEnded: one of them was the last denial allowed.
        """
        while self._waiting:
            answer = self._waiting.pop(0)
            key = _key(answer.call)
            if answer.result.error is not None and answer.result.error.code in DENIALS:
                why = f"{answer.call.tool} was proposed {MAX_IDENTICAL_DENIALS} times with the same arguments and denied each time"
                self._move(self._breakers.denied(key), why)
            elif answer.result.ok:
                self._move(self._breakers.observed(key, answer.evidence), "")

    def take(self) -> Mapping[str, Any] | None:
        """The counts to write; ``None`` when they have not changed since the last write."""
        changed, self._changed = self._changed, False
        return self._breakers.dump() if changed else None

    def put_back(self) -> None:
        """Undo a ``take`` whose write did not happen."""
        self._changed = True

    def _move(self, moved: Breakers | Trip, why: str) -> None:
        match moved:
            case Trip():
                raise RunEnded(status="failed", code=str(moved), message=why)
            case Breakers():
                self._changed = self._changed or moved is not self._breakers
                self._breakers = moved
            case _ as never:
                assert_never(never)


def _key(call: ProposedCall) -> str:
    return repetition_key(call.tool, call.arguments_text)
