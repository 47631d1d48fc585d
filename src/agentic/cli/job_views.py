"""Jobs of providers for people and programs: never what a provider answered, which is read by its tool. Pure."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.table import Table

from agentic.cli.safe_text import safe_line
from agentic.cli.times import minute, moment
from agentic.contract.json_types import JsonObject
from agentic.services.provider_jobs.models import ProviderJob

if TYPE_CHECKING:
    from datetime import datetime


def job_view(job: ProviderJob) -> JsonObject:
    """A job as a JSON object."""
    return {
        "id": str(job.id),
        "run_id": str(job.run_id),
        "root_run_id": str(job.root_run_id),
        "provider": job.provider,
        "provider_job_id": job.provider_job_id,
        "state": str(job.state),
        "cost": _plain(job.cost),
        "usage_id": None if job.usage_id is None else str(job.usage_id),
        "submitted_at": job.submitted_at.isoformat(),
        "terminal_at": _time(job.terminal_at),
        "unknown_at": _time(job.unknown_at),
        "settle_failed_at": _time(job.settle_failed_at),
        "asks": job.asks,
        "note": job.note,
        "late_report": _plain(job.late_report),
    }


def job_table(jobs: Sequence[JsonObject]) -> Table:
    """Jobs, a row each."""
    table = Table("job", "provider", "state", "since", "note", box=None, pad_edge=False)
    for job in jobs:
        row = [job["id"], job["provider"], job["state"], minute(str(job["submitted_at"])), _note(job)]
        table.add_row(*(safe_line(str(cell)) for cell in row))
    return table


def job_fields(job: Mapping[str, Any]) -> dict[str, Any]:
    """One job, field by field; what it lacks is left out by the table."""
    plain = {name.replace("_", " "): _read(name, value) for name, value in job.items() if value != 0}
    return {**plain, "cost": _amount(job["cost"]), "late report": _said_late(job["late_report"]), "stands": _note(job)}


def drop_view(row: Mapping[str, Any]) -> JsonObject:
    """A count of deliveries that changed nothing, as a JSON object."""
    return {
        "provider": row["provider"],
        "reason": row["reason"],
        "day": row["day"].isoformat(),
        "drops": row["drops"],
        "last_at": row["last_at"].isoformat(),
    }


def drop_table(drops: Sequence[JsonObject]) -> Table:
    """Such counts, a row each."""
    table = Table("day", "provider", "reason", "deliveries", box=None, pad_edge=False)
    for drop in drops:
        table.add_row(*(safe_line(str(drop[name])) for name in ("day", "provider", "reason", "drops")))
    return table


def _note(job: Mapping[str, Any]) -> str:
    if job["unknown_at"] is not None and job["terminal_at"] is None:
        return f"nobody knows whether the provider took it; {job['note'] or 'look there'}"
    if job["terminal_at"] is None:
        return "" if job["provider_job_id"] is not None else "not confirmed yet"
    if job["usage_id"] is None:
        return "its cost is not settled" + (", and was given up" if job["settle_failed_at"] else "")
    return "a later report says otherwise" if job["late_report"] else ""


def _read(name: str, value: Any) -> Any:
    return moment(value) if name.endswith("_at") and value is not None else value


def _amount(cost: Mapping[str, Any] | None) -> str:
    return "" if cost is None else f"{cost['quantity']} {cost['unit']}"


def _said_late(report: Mapping[str, Any] | None) -> str:
    if report is None:
        return ""
    return f"{report['state']}, {_amount(report['cost']) or 'no cost'}, at {moment(report['at'])}; charged to nobody"


def _plain(value: Mapping[str, Any] | None) -> JsonObject | None:
    return None if value is None else dict(value)


def _time(when: "datetime | None") -> str | None:
    return None if when is None else when.isoformat()
