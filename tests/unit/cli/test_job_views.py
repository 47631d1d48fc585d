"""Jobs as people read them: amounts and times, no value as a program writes it."""

from datetime import UTC, datetime
from uuid import UUID

from agentic.cli.job_views import job_fields, job_view
from agentic.services.provider_jobs.models import JobState, ProviderJob

AT = datetime(2026, 11, 30, 12, 0, 1, 500, tzinfo=UTC)


def test_what_a_job_cost_and_what_was_said_of_it_too_late_are_words() -> None:
    job = ProviderJob(
        id=UUID(int=1),
        organization_id=UUID(int=2),
        root_run_id=UUID(int=3),
        run_id=UUID(int=3),
        provider="fullenrich",
        provider_job_id="batch-1",
        state=JobState.COMPLETED,
        result=None,
        result_digest=None,
        cost={"unit": "credit", "quantity": "2"},
        usage_id=UUID(int=4),
        submitted_at=AT,
        terminal_at=AT,
        now=AT,
        late_report={"state": "cancelled", "cost": None, "at": "2026-11-30T12:00:02.25+00:00"},
    )
    fields = job_fields(job_view(job))
    assert fields["cost"] == "2 credit"
    assert fields["late report"] == "cancelled, no cost, at 2026-11-30 12:00:02+00:00; charged to nobody"
    assert (fields["submitted at"], fields["terminal at"]) == ("2026-11-30 12:00:01+00:00",) * 2
    assert fields["stands"] == "a later report says otherwise"
    assert not any("{" in str(value) for value in fields.values())
