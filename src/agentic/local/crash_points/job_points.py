"""The places where a process that submits, takes in or settles a provider's job may die, in the order a job comes to them."""

from collections.abc import Mapping
from enum import StrEnum


class JobCrashPoint(StrEnum):
    """A place; ``JOB_SENTENCES`` says each in words."""

    BEFORE_RESERVE = "before-reserve"
    AFTER_RESERVE = "after-reserve"
    BEFORE_SUBMIT = "before-submit"
    SUBMIT_ACCEPTED = "submit-accepted"
    BEFORE_BIND = "before-bind"
    AFTER_BIND = "after-bind"
    BEFORE_INTAKE = "before-intake"
    INSIDE_INTAKE = "inside-intake"
    AFTER_INTAKE = "after-intake"
    BEFORE_SETTLE = "before-settle"
    INSIDE_SETTLE = "inside-settle"
    AFTER_SETTLE = "after-settle"


JOB_SENTENCES: Mapping[JobCrashPoint, str] = {
    JobCrashPoint.BEFORE_RESERVE: "the call is claimed; its job is not reserved",
    JobCrashPoint.AFTER_RESERVE: "the job is reserved and holds the money; the request has not left",
    JobCrashPoint.BEFORE_SUBMIT: "it is marked that the request may have left; it has not",
    JobCrashPoint.SUBMIT_ACCEPTED: "the provider took the batch; nobody has heard its answer",
    JobCrashPoint.BEFORE_BIND: "the provider's answer is here; its id of the job is not stored",
    JobCrashPoint.AFTER_BIND: "the provider's id is stored; the call is not completed",
    JobCrashPoint.BEFORE_INTAKE: "a signed report is here; nothing of it is stored",
    JobCrashPoint.INSIDE_INTAKE: "the report is stored and not committed, inside its one transaction",
    JobCrashPoint.AFTER_INTAKE: "the report is stored; nobody is nudged, and the provider has no answer",
    JobCrashPoint.BEFORE_SETTLE: "the job has ended; nothing of its cost is written",
    JobCrashPoint.INSIDE_SETTLE: "line, stamp and end of the hold are written and not committed",
    JobCrashPoint.AFTER_SETTLE: "the cost is settled; the function has not ended",
}
