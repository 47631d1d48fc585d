"""``agentic mcp call``: its options, and the person who is asked."""

from collections.abc import Mapping
from typing import Annotated, Any
from uuid import uuid4

import typer

from agentic.cli.mcp_options import Name
from agentic.cli.options import Json, Organization, Person, settings_of
from agentic.cli.output import say, show_json, show_line

WAITS = 3
"""Exit status of a call that waits for a person."""
_NEXT = {
    "tool_changed": "mcp diff {server} shows what differs from what was approved",
    "unknown_tool": "mcp tools {server} says what is approved of it",
    "withdrawn": "mcp tools {server} says what is approved of it",
    "outcome_unknown": "uncertain list says what is known of it; look at the other side, then settle it",
}
"""By what a call ended with: the command that says more."""
_SAYS = {"remote": "the server says", "domain": "the tool says", "reviewer": "whoever decided says"}


def call(
    context: typer.Context,
    name: Name,
    tool: Annotated[str, typer.Argument(metavar="TOOL", help="As the server names it.")],
    arguments: Annotated[str, typer.Option("--arguments", metavar="JSON", help="An object.")] = "{}",
    yes: Annotated[bool, typer.Option("--yes", help="Answer an approval with yes instead of asking.")] = False,
    request_key: Annotated[
        str | None,
        typer.Option(
            "--request-key", metavar="KEY", help="The same key goes on with the same call; by default a new one."
        ),
    ] = None,
    organization: Organization = None,
    person: Person = None,
    as_json: Json = False,
) -> None:
    """Make one governed call by hand. Decided, made once, bounded like any other. Exits 1 when it fails, 3 when it waits for a person."""
    from agentic.cli.mcp_calling import Wanted, read_arguments
    from agentic.cli.mcp_calling import call as make
    from agentic.cli.mcp_person import asked_here
    from agentic.cli.records import acting
    from agentic.local.program import command

    folder = settings_of(context).folder
    wanted = Wanted(
        server=name, tool=tool, arguments=read_arguments(arguments), request_key=request_key or str(uuid4())
    )
    try:
        ended = make(folder, wanted, organization=organization, user_id=acting(folder, person), ask=asked_here(yes=yes))
    except KeyboardInterrupt:
        say(f"interrupted; the same call with --request-key {wanted.request_key} goes on from where it stands")
        raise
    again = command(folder)
    if as_json:
        show_json(ended.view(wanted))
    else:
        _show(ended.view(wanted))
        if ended.state == "waiting":
            say(
                f"it waits for a person: {again} approvals approve {ended.approval_id}   (or reject), then the same call"
            )
            say(f"with --request-key {wanted.request_key}")
        if ended.code in _NEXT:
            say(f"{again} {_NEXT[ended.code].format(server=name)}")
        say(f"{again} runs show {ended.run_id} tells what happened")
    if ended.state == "waiting":
        raise typer.Exit(WAITS)
    if ended.code is not None:
        raise typer.Exit(1)


def _show(view: Mapping[str, Any]) -> None:
    """The answer, or why there is none. What the server wrote is printed as text that nothing obeys."""
    import json

    from agentic.cli.safe_text import safe

    result = view["result"]
    if result is not None and result["ok"]:
        show_line(safe(json.dumps(result["data"], indent=2, ensure_ascii=False)))
    elif result is not None:
        error = result["error"]
        say(f"{error['code']}: {error['message']}" + (f" ({error['detail']})" if error["detail"] else ""))
        if error["said"]:
            say(f"{_SAYS[error['said']['by']]}: {safe(error['said']['text'])}")
    elif view["code"] is not None:
        say(f"{view['code']}: {view['message']}")
