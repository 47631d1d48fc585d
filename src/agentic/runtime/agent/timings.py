"""The durations a run is led by (docs/architecture.md). Tests and the crash demonstration shorten them together, never in part."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class Timings:
    """Seconds, all of them."""

    lease_s: float = 60
    renew_s: float = 15
    slice_s: float = 300
    """Wall clock of one segment, checked at the checkpoint, where stopping loses nothing."""
    approval_expires_s: float = 7 * 24 * 3600
    run_deadline_s: float = 30 * 24 * 3600
    model_retry_s: float = 15
    """First wait for a provider that is down and does not say for how long; doubles with each failure in a row."""
    model_retry_max_s: float = 900
    """Longest wait for a provider, also when it asks for more."""
    fault_retry_s: float = 5
    """First wait after a fault of the platform; doubles with each attempt without progress."""
    max_attempts_without_progress: int = 5


def fault_wait_s(timings: Timings, attempt: int) -> float:
    """How long to wait before the next attempt after a fault."""
    return timings.fault_retry_s * 2.0 ** max(0, attempt - 1)


def provider_wait_s(timings: Timings, failures: int, *, asked_s: float | None) -> float:
    """How long to wait for a provider that is down.

    Args:
        failures: how often in a row it was down before this time.
        asked_s: what the provider asked for, if it did. A shorter wait than the first of our own is granted once, not again and
            again.
    """
    own_s = timings.model_retry_s * 2.0 ** min(failures, 30)
    least_s = timings.model_retry_s if failures else 0.0
    wait_s = own_s if asked_s is None else max(asked_s, least_s)
    return min(wait_s, timings.model_retry_max_s)
