"""``agentic capacity``: whether the vendor accounts bear what the deployment can ask of them at once."""

import asyncio
from typing import TYPE_CHECKING, Annotated

import typer

from agentic.cli.options import Json, settings_of
from agentic.cli.output import say, show, show_json

if TYPE_CHECKING:
    from agentic.bootstrap import App
    from agentic.contract.json_types import JsonObject
    from agentic.services.capacity.arithmetic import AccountLoad
    from agentic.services.tools.models import ToolSpec

app = typer.Typer(name="capacity", no_args_is_help=True, help="Checks the arithmetic of vendor accounts.")


@app.callback()
def capacity() -> None:
    """Keep ``check`` a command of its own."""


@app.command()
def check(
    context: typer.Context,
    app_path: Annotated[
        str, typer.Option("--app", metavar="MODULE:NAME", help="Your App, which declares its capacity.")
    ],
    as_json: Json = False,
) -> None:
    """For each account: runs at once x calls of the widest run, lane by lane, against its limit. Exits with 1 when one is too small."""
    from agentic.cli.app_path import app_at
    from agentic.cli.listings import account_table
    from agentic.cli.records import home_of
    from agentic.cli.vendors import reach_vendors_of
    from agentic.contract.errors import ProgramFault
    from agentic.services.capacity.arithmetic import account_loads, unknown_tools

    async def loads() -> "list[AccountLoad]":
        async with app_at(app_path) as found:
            unknown = unknown_tools(found.capacity, {tool.spec.name for tool in found.declared_tools()})
            if unknown:
                raise ProgramFault(
                    f"the capacity of {app_path} names tools that the app does not declare: {', '.join(unknown)}"
                )
            return account_loads(found.capacity, _agents(found))

    reach_vendors_of(home_of(settings_of(context).folder))
    found = asyncio.run(loads())
    if as_json:
        show_json([_view(load) for load in found])
    elif found:
        show(account_table([_view(load) for load in found]))
    else:
        say(f"{app_path} declares no vendor account; give its App a Capacity with accounts to check them")
    if not all(load.fits for load in found):
        raise typer.Exit(1)


def _agents(app: "App") -> "dict[str, list[ToolSpec]]":
    specs = {tool.spec.name: tool.spec for tool in app.declared_tools()}
    return {agent.name: [specs[name] for name in agent.tools if name in specs] for agent in app.agents}


def _view(load: "AccountLoad") -> "JsonObject":
    return {
        "provider": load.account.provider,
        "limit": load.account.limit,
        "calls": load.calls,
        "fits": load.fits,
        "lanes": [
            {
                "lane": str(lane.lane),
                "runs": lane.runs,
                "calls": lane.calls,
                "widest": lane.widest,
                "product": lane.product,
            }
            for lane in load.lanes
        ],
    }
