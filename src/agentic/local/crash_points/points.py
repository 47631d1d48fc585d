"""The closed list of places where a process that leads or decides a run may die, in the order a run comes to them."""

from collections.abc import Mapping
from enum import Enum, StrEnum, auto


class CrashPoint(StrEnum):
    """A place; ``SENTENCES`` says each in words."""

    MODEL_STREAM = "model-stream"
    BEFORE_ANSWER_APPEND = "before-answer-append"
    AFTER_ANSWER_APPEND = "after-answer-append"
    BEFORE_RESULT_APPEND = "before-result-append"
    AFTER_RESULT_APPEND = "after-result-append"
    BEFORE_PAUSE = "before-pause"
    AFTER_PAUSE = "after-pause"
    BEFORE_PARK = "before-park"
    INSIDE_PARK = "inside-park"
    AFTER_PARK = "after-park"
    AFTER_DECISION = "after-decision"
    BEFORE_RESUME = "before-resume"
    AFTER_RESUME = "after-resume"
    BEFORE_PREFLIGHT = "before-preflight"
    AFTER_PREFLIGHT = "after-preflight"
    BEFORE_CLAIM = "before-claim"
    AFTER_CLAIM = "after-claim"
    BEFORE_EFFECT = "before-effect"
    BEFORE_WATERMARK = "before-watermark"
    AFTER_WATERMARK = "after-watermark"
    EFFECT_ACCEPTED = "effect-accepted"
    AFTER_EFFECT = "after-effect"
    BEFORE_COMPLETE = "before-complete"
    AFTER_COMPLETE = "after-complete"
    BEFORE_NEXT_APPEND = "before-next-append"
    AFTER_NEXT_APPEND = "after-next-append"
    BEFORE_FINISH = "before-finish"
    AFTER_FINISH = "after-finish"


SENTENCES: Mapping[CrashPoint, str] = {
    CrashPoint.MODEL_STREAM: "the model is answering; nothing of its answer is stored",
    CrashPoint.BEFORE_ANSWER_APPEND: "the model's answer is complete and not stored; its reads have not run",
    CrashPoint.AFTER_ANSWER_APPEND: "the model's answer is stored; its reads have not run",
    CrashPoint.BEFORE_RESULT_APPEND: "the reads have run; their results are not stored",
    CrashPoint.AFTER_RESULT_APPEND: "the reads' results are stored; the model is not asked again yet",
    CrashPoint.BEFORE_PAUSE: "the model proposed calls; they are not stored",
    CrashPoint.AFTER_PAUSE: "the proposed calls are stored; none of them is looked at",
    CrashPoint.BEFORE_PARK: "a call must ask; neither the question nor the wait is stored",
    CrashPoint.INSIDE_PARK: "the question is written and the run not parked, inside the one transaction of both",
    CrashPoint.AFTER_PARK: "the question is filed and the run parked",
    CrashPoint.AFTER_DECISION: "a person's decision is committed; the process that took it dies before it tells anybody",
    CrashPoint.BEFORE_RESUME: "the call is approved; a worker is about to take the run up again",
    CrashPoint.AFTER_RESUME: "the run is taken up again; nothing of it is looked at",
    CrashPoint.BEFORE_PREFLIGHT: "the approved call is about to be looked up",
    CrashPoint.AFTER_PREFLIGHT: "the approved call is looked up; nothing is decided",
    CrashPoint.BEFORE_CLAIM: "the call may run; its claim is not stored",
    CrashPoint.AFTER_CLAIM: "the claim is stored; the handler has not begun",
    CrashPoint.BEFORE_EFFECT: "the handler has begun; nothing has left",
    CrashPoint.BEFORE_WATERMARK: "the request is about to leave; that is not marked",
    CrashPoint.AFTER_WATERMARK: "it is marked that the request may have left; it has not",
    CrashPoint.EFFECT_ACCEPTED: "the provider accepted the request; nobody has heard its answer",
    CrashPoint.AFTER_EFFECT: "the handler has the provider's answer and has not returned it",
    CrashPoint.BEFORE_COMPLETE: "the answer is ready; it is not stored",
    CrashPoint.AFTER_COMPLETE: "the answer is stored; the run has not gone on",
    CrashPoint.BEFORE_NEXT_APPEND: "the answer is in the journal; the message that carries it is not stored",
    CrashPoint.AFTER_NEXT_APPEND: "the answer's message is stored; the model has not read it",
    CrashPoint.BEFORE_FINISH: "the model's last words are there; the run's end is not stored",
    CrashPoint.AFTER_FINISH: "the run's end is stored",
}

AFTER_ANSWER = frozenset(list(CrashPoint)[list(CrashPoint).index(CrashPoint.AFTER_DECISION) :])
"""The points a run comes to once a person has answered."""


class Left(Enum):
    """What the world and the journal may hold of the call when the process dies at a point."""

    NOTHING = auto()
    """Nothing has left, and the journal says so."""
    MARKED = auto()
    """Nothing has left, and the journal cannot know."""
    DONE = auto()
    """It happened, and the journal cannot know."""
    STORED = auto()
    """It happened, and its answer is stored."""


def left(point: CrashPoint, *, marked_with_claim: bool = False) -> Left:
    """What a death there leaves.

    Args:
        marked_with_claim: the tool's watermark is set by its claim, not at its transport.
    """
    order = list(CrashPoint)
    place = order.index(point)
    if place >= order.index(CrashPoint.AFTER_COMPLETE):
        return Left.STORED
    if place >= order.index(CrashPoint.EFFECT_ACCEPTED):
        return Left.DONE
    marks = CrashPoint.AFTER_CLAIM if marked_with_claim else CrashPoint.AFTER_WATERMARK
    return Left.MARKED if place >= order.index(marks) else Left.NOTHING
