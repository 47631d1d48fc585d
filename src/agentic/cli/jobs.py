"""``agentic jobs``: work that providers finish later, and what a person does about a job nobody knows of (docs/provider-jobs.md)."""

from typing import TYPE_CHECKING, Annotated
from uuid import UUID

import typer

from agentic.cli.options import Json, Limit, Organization, Person, settings_of
from agentic.cli.output import say, show, show_json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agentic.cli.records import Records
    from agentic.contract.events import Event
    from agentic.contract.json_types import JsonObject
    from agentic.services.provider_jobs.models import ProviderJob, Which
    from agentic.services.provider_jobs.operating import JobDesk

app = typer.Typer(name="jobs", no_args_is_help=True, help="Shows jobs of providers, and asks about silent ones.")
Job = Annotated[UUID, typer.Argument(metavar="JOB", help="Our id of the job.")]


@app.command("list")
def list_jobs(
    context: typer.Context,
    open_: Annotated[bool, typer.Option("--open", help="Only those that go on.")] = False,
    unknown: Annotated[bool, typer.Option("--unknown", help="Only those nobody knows of; they wait for you.")] = False,
    unsettled: Annotated[bool, typer.Option("--unsettled", help="Only those whose cost is not settled.")] = False,
    limit: Limit = 100,
    organization: Organization = None,
    as_json: Json = False,
) -> None:
    """List jobs, the latest first."""
    from agentic.cli.job_views import job_table, job_view
    from agentic.cli.records import with_records

    which = _which(open_, unknown, unsettled)

    async def read(records: "Records") -> "tuple[list[JsonObject], UUID]":
        found = await _desk(records).find(records.organization_id, which=which, limit=limit)
        return [job_view(job) for job in found], records.organization_id

    found, where = with_records(settings_of(context).folder, organization, read)
    if as_json:
        show_json(found)
    elif found:
        show(job_table(found))
    else:
        say(f"organization {where} has no such job")


@app.command("show")
def show_job(context: typer.Context, job: Job, organization: Organization = None, as_json: Json = False) -> None:
    """Show one job. What the provider answered is read by its tool, under that tool's rules."""
    from agentic.cli.job_views import job_fields, job_view
    from agentic.cli.listings import field_table
    from agentic.cli.records import with_records

    async def read(records: "Records") -> "JsonObject":
        return job_view(await _desk(records).show(records.organization_id, job))

    found = with_records(settings_of(context).folder, organization, read)
    if as_json:
        show_json(found)
    else:
        show(field_table(job_fields(found)))


@app.command()
def drops(context: typer.Context, limit: Limit = 100, as_json: Json = False) -> None:
    """List how many deliveries of providers changed nothing, and why; of every organization."""
    from agentic.cli.job_views import drop_table, drop_view
    from agentic.cli.records import with_records

    async def read(records: "Records") -> "list[JsonObject]":
        return [drop_view(row) for row in await _desk(records).drops(limit=limit)]

    found = with_records(settings_of(context).folder, None, read)
    if as_json:
        show_json(found)
    elif found:
        show(drop_table(found))
    else:
        say("every delivery changed something")


@app.command()
def reconcile(
    context: typer.Context,
    job: Job,
    app_path: Annotated[
        str | None, typer.Option("--app", metavar="MODULE:NAME", help="Your App, whose provider is asked.")
    ] = None,
    not_taken: Annotated[bool, typer.Option("--not-taken", help="You found that the provider never took it.")] = False,
    provider_job_id: Annotated[
        str | None, typer.Option("--provider-id", metavar="ID", help="You found the provider's own id of it.")
    ] = None,
    evidence: Annotated[
        str | None, typer.Option("--evidence", help="What you saw, and where; kept with the job.")
    ] = None,
    organization: Organization = None,
    person: Person = None,
    as_json: Json = False,
) -> None:
    """Find out how a job ended: ask its provider (--app), or say what you found there."""
    from agentic.cli.job_views import job_fields, job_view
    from agentic.cli.listings import field_table
    from agentic.cli.records import acting, with_records

    if not_taken and provider_job_id is not None:
        raise typer.BadParameter("--not-taken and --provider-id exclude each other")
    if (not_taken or provider_job_id is not None) != (evidence is not None):
        raise typer.BadParameter("--evidence goes with --not-taken or --provider-id, and they with it")
    if app_path is None and evidence is None:
        raise typer.BadParameter("name the provider's --app to ask it, or say what you found")
    folder = settings_of(context).folder

    async def act(records: "Records") -> "JsonObject":
        desk, where = _desk(records), records.organization_id
        await desk.show(where, job)
        if evidence is not None:
            who = acting(folder, person)
            if provider_job_id is not None:
                await desk.found(where, job, provider_job_id, user_id=who, evidence=evidence)
            else:
                await desk.not_taken(where, job, user_id=who, evidence=evidence)
        if app_path is not None:
            await _ask(records, app_path, await desk.show(where, job))
        return job_view(await desk.show(where, job))

    found = with_records(folder, organization, act)
    if as_json:
        show_json(found)
    else:
        show(field_table(job_fields(found)))


async def _ask(records: "Records", app_path: str, job: "ProviderJob") -> None:
    from agentic.cli.app_path import app_at
    from agentic.contract.errors import Conflict, ProgramFault
    from agentic.services.provider_jobs.intake import WebhookIntake
    from agentic.services.provider_jobs.reconciling import JobReconciling
    from agentic.storage.job_store import PostgresJobStore

    async def send(events: "Sequence[Event]") -> None:
        await records.flush([event.id for event in events])

    if job.state.terminal:
        say("it has ended, and its provider is not asked")
        return
    if job.provider_job_id is None:
        raise Conflict(
            f"{job.provider} never named its id of job {job.id}, so it cannot be asked; look there, and say --provider-id or --not-taken"
        )
    store = PostgresJobStore(records.database)
    async with app_at(app_path) as declared:
        if job.provider not in {provider.name for provider in declared.providers}:
            raise ProgramFault(f"{app_path} has no provider {job.provider}; name the app whose tool submitted the job")
        intake = WebhookIntake(store=store, providers=declared.providers, send=send)
        asking = JobReconciling(store=store, providers=declared.providers, intake=intake, flush=records.flush)
        if not await asking.ask_about(records.organization_id, job.id):
            say("its provider says of no end yet")


def _desk(records: "Records") -> "JobDesk":
    from agentic.services.provider_jobs.operating import JobDesk
    from agentic.storage.job_store import PostgresJobStore

    return JobDesk(PostgresJobStore(records.database), records.flush)


def _which(open_: bool, unknown: bool, unsettled: bool) -> "Which":
    if open_ + unknown + unsettled > 1:
        raise typer.BadParameter("--open, --unknown and --unsettled exclude each other")
    if open_:
        return "open"
    if unknown:
        return "unknown"
    return "unsettled" if unsettled else "all"
