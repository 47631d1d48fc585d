"""What FullEnrich writes about a batch, as values. A callback and the answer to a question have the same body."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Final

from agentic.contract.deliveries import Unreadable
from agentic.services.provider_jobs.models import JobCost, JobReport, JobState

UNIT: Final = "credit"
_MAX_ID_CHARS = 200
_MAX_CREDITS = 1_000_000
_STATES: Final[Mapping[str, JobState]] = {
    "CREATED": JobState.RUNNING,
    "IN_PROGRESS": JobState.RUNNING,
    "RATE_LIMIT": JobState.RUNNING,
    "UNKNOWN": JobState.RUNNING,
    "FINISHED": JobState.COMPLETED,
    # the account ran dry: what was found before is real and billed
    "CREDITS_INSUFFICIENT": JobState.FAILED,
    "CANCELED": JobState.CANCELLED,
}


def vendor_id(value: object) -> str:
    """An id of the vendor's.

    Raises:
        Unreadable: it is none.
    """
    if not isinstance(value, str) or not 1 <= len(value) <= _MAX_ID_CHARS or not value.isprintable():
        raise Unreadable("there is no id of the batch")
    return value


def report_of(payload: Mapping[str, Any]) -> JobReport:
    """What a body says of its batch.

    Raises:
        Unreadable: it has no id, or a status that FullEnrich does not document.
    """
    provider_job_id = vendor_id(payload.get("id"))
    status, name = payload.get("status"), payload.get("name")
    state = _STATES.get(status) if isinstance(status, str) else None
    if state is None:
        raise Unreadable("the status is none that is documented")
    return JobReport(
        provider_job_id=provider_job_id,
        name=name if isinstance(name, str) else None,
        state=state,
        result=payload,
        cost=_cost(payload.get("cost")),
        delivery_id=f"{provider_job_id}:{status}",
    )


def _cost(cost: object) -> JobCost | None:
    credits_ = cost.get("credits") if isinstance(cost, Mapping) else None
    if isinstance(credits_, bool) or not isinstance(credits_, int) or not 0 <= credits_ <= _MAX_CREDITS:
        return None
    return JobCost(quantity=Decimal(credits_), unit=UNIT)
