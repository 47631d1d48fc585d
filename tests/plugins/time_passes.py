"""The leases of a process that died or stands still run out. Moved rather than waited for, so that a slow machine loses none too early."""

from uuid import UUID

from agentic.storage.database import Database

_OVER = (
    "update agent.runs set lease_expires_at = clock_timestamp() where id = %(run)s and lease_expires_at is not null",
    "update agent.idempotency_keys set lease_expires_at = clock_timestamp() where run_id = %(run)s and state = 'processing'",
    "update agent.outbox set created_at = created_at - interval '1 minute', next_attempt_at = clock_timestamp() where run_id = %(run)s",
)


async def time_passes(database: Database, run_id: UUID) -> None:
    """Whatever was held for this run is over, and its events are old."""
    for statement in _OVER:
        await database.count(statement, {"run": run_id})
