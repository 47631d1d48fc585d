"""``agentic policy``: the rules, checked before they are saved, and explained for a call that nobody makes (ADR 0026)."""

import json
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar
from uuid import UUID

import typer

from agentic.cli.options import Json, Organization, Person, settings_of
from agentic.cli.output import say, show, show_json

if TYPE_CHECKING:
    from agentic.cli.policy_desk import PolicyDesk

T = TypeVar("T")
app = typer.Typer(name="policy", no_args_is_help=True, help="Lists, checks, saves and explains the rules of calls.")
AppPath = Annotated[
    str | None,
    typer.Option(
        "--app",
        metavar="MODULE:NAME",
        help="Your App, for its own tools and facts; by default the tools that the database knows.",
    ),
]
Platform = Annotated[
    bool, typer.Option("--platform", help="A rule that counts for every organization of the database.")
]
RuleFile = Annotated[
    Path, typer.Argument(metavar="FILE", help="One rule as JSON, or a list of rules; - reads standard input.")
]
Trust = Literal["external", "internal", "user", "platform"]


@app.command("list")
def list_rules(context: typer.Context, organization: Organization = None, as_json: Json = False) -> None:
    """List the live rules of the organization, the platform's and the packaged ones included."""
    from agentic.cli.policy_listings import rule_table

    async def read(desk: "PolicyDesk") -> list[dict[str, Any]]:
        return [
            {"rule_id": rule.rule_id, **rule.model_dump(mode="json")}
            for rule in await desk.policy.rules(desk.organization_id)
        ]

    found = _at_desk(context, organization, None, read)
    if as_json:
        show_json(found)
    else:
        show(rule_table(found))


@app.command()
def lint(
    context: typer.Context,
    file: Annotated[
        Path | None, typer.Argument(metavar="[FILE]", help="Rules as JSON; by default the live ones.")
    ] = None,
    app_path: AppPath = None,
    organization: Organization = None,
    as_json: Json = False,
) -> None:
    """Check rules against every tool they may speak about. Exits with 1 when one could not be saved."""
    from agentic.cli.policy_listings import findings_text
    from agentic.cli.policy_rules import read_rules

    async def check(desk: "PolicyDesk") -> list[dict[str, Any]]:
        drafts = await desk.policy.rules(desk.organization_id) if file is None else read_rules(file)
        return [{"rule": draft.name, **finding.model_dump()} for draft in drafts for finding in desk.policy.lint(draft)]

    found = _at_desk(context, organization, app_path, check)
    if as_json:
        show_json(found)
    else:
        show(findings_text(found))
    if any(finding["severity"] == "error" for finding in found):
        raise typer.Exit(1)


@app.command()
def explain(
    context: typer.Context,
    tool: Annotated[str, typer.Argument(metavar="TOOL")],
    arguments: Annotated[str, typer.Argument(metavar="ARGS", help="The arguments as JSON.")] = "{}",
    facts: Annotated[str, typer.Option(metavar="JSON", help="Values of facts, instead of finding them out.")] = "{}",
    trust: Annotated[Trust, typer.Option(help="The lowest label of what the run has read.")] = "user",
    environment: Annotated[Literal["live", "frozen"], typer.Option(help="Of the deployment.")] = "live",
    app_path: AppPath = None,
    organization: Organization = None,
    person: Annotated[
        UUID | None, typer.Option("--as", metavar="USER", help="Whom the run acts for; by default nobody.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Say what the rules of now decide about a call, and what each of them said. Nothing runs."""
    from agentic.cli.policy_listings import explanation_view
    from agentic.contract import trust as labels

    given = _object(facts, "--facts")

    async def ask(desk: "PolicyDesk") -> dict[str, Any]:
        told = await desk.policy.explain(
            desk.organization_id,
            tool,
            arguments,
            user_id=person,
            facts=given,
            context_trust=labels.Trust(trust),
            environment=environment,
        )
        return told.model_dump(mode="json")

    told = _at_desk(context, organization, app_path, ask)
    if as_json:
        show_json(told)
    else:
        show(explanation_view(told))


@app.command()
def save(
    context: typer.Context,
    file: RuleFile,
    platform: Platform = False,
    app_path: AppPath = None,
    organization: Organization = None,
    person: Person = None,
    as_json: Json = False,
) -> None:
    """Save rules, each as the next version of its name. They count at the next call, also of runs that wait."""
    from agentic.cli.policy_rules import read_rules

    async def act(desk: "PolicyDesk") -> list[dict[str, Any]]:
        whose = None if platform else desk.organization_id
        who = None if platform else desk.acting(person)
        drafts = read_rules(file)
        for draft in drafts:
            desk.policy.check(draft)  # all of them before the first is saved
        saved = [await desk.policy.save(draft, organization_id=whose, user_id=who) for draft in drafts]
        return [
            {
                "rule_id": one.rule.rule_id,
                **one.rule.model_dump(mode="json"),
                "warnings": [str(warning) for warning in one.warnings],
            }
            for one in saved
        ]

    saved = _at_desk(context, organization, app_path, act)
    if as_json:
        show_json(saved)
        return
    for rule in saved:
        say(f"{rule['rule_id']} is saved as version {rule['version']}")
        for warning in rule["warnings"]:
            say(f"  note: {warning}")


@app.command()
def retire(
    context: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME")],
    platform: Platform = False,
    organization: Organization = None,
    person: Person = None,
    as_json: Json = False,
) -> None:
    """End a rule; its versions stay for the record."""

    async def act(desk: "PolicyDesk") -> dict[str, Any]:
        whose = None if platform else desk.organization_id
        who = None if platform else desk.acting(person)
        rule = await desk.policy.retire(name, organization_id=whose, user_id=who)
        return {"rule_id": rule.rule_id, **rule.model_dump(mode="json")}

    retired = _at_desk(context, organization, None, act)
    if as_json:
        show_json(retired)
    else:
        say(f"{retired['rule_id']} is retired after version {retired['version']}")


def _at_desk(
    context: typer.Context,
    organization: UUID | None,
    app_path: str | None,
    act: "Callable[[PolicyDesk], Coroutine[Any, Any, T]]",
) -> T:
    from agentic.cli.policy_desk import at_desk

    return at_desk(settings_of(context).folder, organization, app_path, act)


def _object(text: str, option: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError as error:
        raise typer.BadParameter(f"{option} is no JSON ({error})") from error
    if not isinstance(value, dict):
        raise typer.BadParameter(f"{option} is a JSON object of values by name, such as '{{\"is_new\": true}}'")
    return value
