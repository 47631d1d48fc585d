"""``agentic runs watch``: what happens to a run, a line each, from the beginning until it is over."""

import json
from typing import TYPE_CHECKING, Annotated, Any
from uuid import UUID

import typer

from agentic.cli.options import Organization, settings_of
from agentic.cli.output import say, show_line
from agentic.cli.safe_text import safe_line
from agentic.cli.times import moment

if TYPE_CHECKING:
    from agentic.cli.records import Records
    from agentic.contract.json_types import JsonObject

_SHOWN = (
    "tool_name",
    "tool",
    "outcome_status",
    "reason_code",
    "error_code",
    "partial_reason",
    "on",
    "due_at",
    "by",
    "text",
)
"""Facts of an event that a line for people has, in this order."""


def watch_run(
    context: typer.Context,
    run: Annotated[UUID, typer.Argument(metavar="RUN", help="The run's id.")],
    after: Annotated[int, typer.Option("--after", min=0, help="Go on behind the event of this number.")] = 0,
    organization: Organization = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON object a line.")] = False,
) -> None:
    """Print what happens to a run while it happens: transitions, calls, questions, the model's words. Ends with the run."""
    from agentic.api.views import event_view
    from agentic.cli.records import with_records
    from agentic.services.runs.following import follow

    async def watch(records: "Records") -> str:
        state = ""
        async for page in follow(records.events, records.organization_id, run, after=after):
            state = page.state
            for event in page.events:
                view = event_view(event)
                show_line(json.dumps(view) if as_json else event_line(view))
        return state

    say(f"run {run} is {with_records(settings_of(context).folder, organization, watch)}")


def event_line(event: "JsonObject") -> str:
    """An event for people. Pure."""
    data: Any = event["data"]
    facts = [_fact(data[name]) for name in _SHOWN if data.get(name) not in (None, "", [])]
    return "  ".join([f"{event['seq']:>5}", moment(str(event["at"])), f"{event['kind']:<20}", *facts]).rstrip()


def _fact(value: Any) -> str:
    return safe_line(", ".join(map(str, value)) if isinstance(value, list) else str(value))
