"""Where a worker may be killed, and what kills it there: for the demo and for the acceptance tests, never for production."""

from agentic.local.crash_points.arming import Armed, ArmedByFile
from agentic.local.crash_points.job_points import JOB_SENTENCES, JobCrashPoint
from agentic.local.crash_points.points import AFTER_ANSWER, SENTENCES, CrashPoint, Left, left

__all__ = [
    "AFTER_ANSWER",
    "JOB_SENTENCES",
    "SENTENCES",
    "Armed",
    "ArmedByFile",
    "CrashPoint",
    "JobCrashPoint",
    "Left",
    "left",
]
