"""The ids that follow from what a job is, so that whoever makes them again makes the same ones."""

from uuid import UUID, uuid5

_JOB = UUID("0e3f5c0a-94a1-5f0e-8d53-6a2c4a6f7b21")
_USAGE = UUID("c7a1d8f2-5b7e-5a41-9f6d-2b1e0c9d8e37")


def job_id_of(organization_id: UUID, tool: str, key: str) -> UUID:
    """The id of the job that a call submits, whatever attempt of it asks.

    Args:
        tool: platform name.
        key: of the call in the journal: its run, step and arguments.
    """
    return uuid5(_JOB, f"{organization_id}:{tool}:{key}")


def job_usage_id(job_id: UUID) -> UUID:
    """The id of a job's one usage line (M1)."""
    return uuid5(_USAGE, str(job_id))
