"""Signed deliveries of providers, as everybody who takes them speaks of them: what the sender is told, and why nothing changed."""

from enum import StrEnum


class Receipt(StrEnum):
    """What the sender is told."""

    TAKEN = "taken"
    """It is stored, or there is nothing to store; it need not come again."""
    NOT_SIGNED = "not_signed"
    UNREADABLE = "unreadable"


class DropReason(StrEnum):
    """Why a delivery changed nothing."""

    BAD_SIGNATURE = "bad_signature"
    UNREADABLE = "unreadable"
    """Signed, and not what the provider documents."""
    UNKNOWN_JOB = "unknown_job"
    JOB_MISMATCH = "job_mismatch"
    """Signed for another job than the one its address names."""
    NOT_TERMINAL = "not_terminal"
    """Progress: noted on the job, and nothing else happens."""
    UNKNOWN_ACCOUNT = "unknown_account"
    """Signed for an account that no connection stands for."""
    NOT_USED = "not_used"
    """An event nobody here does anything with."""
    DUPLICATE = "duplicate"
    LATE = "late"
    """A job had ended otherwise, and what this one says is noted beside it; or an account was connected again since."""


class Unreadable(Exception):
    """A signed body, or a provider's answer, that is not what the provider documents."""
