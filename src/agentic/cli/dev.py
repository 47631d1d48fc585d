"""``agentic dev``, ``agentic worker`` and ``agentic token``: an app on one machine, more workers for it, and a key to its API."""

from typing import Annotated

import typer

from agentic.cli.options import Organization, Person, settings_of
from agentic.cli.serve import DEFAULT_PORT

App = Annotated[str, typer.Option("--app", metavar="MODULE:NAME", help="Where your App is, such as my.module:app.")]


def dev(
    context: typer.Context,
    app: App,
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Of the API, on 127.0.0.1; 0 takes a free one.")
    ] = DEFAULT_PORT,
    functions_port: Annotated[
        int, typer.Option(min=0, max=65535, help="Shared by the workers; 0 takes a free one.")
    ] = 0,
    workers: Annotated[int, typer.Option(min=1, max=64, help="How many worker processes.")] = 1,
    stand_ins: Annotated[
        bool,
        typer.Option(
            "--stand-ins", help="Stand in for every vendor on this machine: keys, addresses, a mailbox, prices."
        ),
    ] = False,
) -> None:
    """Run an app on this machine: database, function engine, API and workers. A worker that dies is replaced."""
    import asyncio

    from agentic.cli.output import say
    from agentic.cli.records import home_of
    from agentic.local.dev.service import DevOptions, serve_development
    from agentic.local.program import command

    _import_from_here()
    home = home_of(settings_of(context).folder)
    options = DevOptions(app=app, port=port, functions_port=functions_port, workers=workers, stand_ins=stand_ins)
    with home.database() as url:
        code = asyncio.run(serve_development(options, home, url, say=say, again=command(home.folder)))
    raise typer.Exit(code)


def worker(
    context: typer.Context,
    app: App,
    port: Annotated[
        int | None,
        typer.Option(
            min=0,
            max=65535,
            help="Of its functions, on 127.0.0.1; workers of one app may share one. By default that of 'agentic dev', else a free one.",
        ),
    ] = None,
) -> None:
    """Run one more worker until SIGTERM or Ctrl-C: it finishes the call in hand and goes."""
    import logging

    from agentic.cli.records import home_of
    from agentic.local.worker.joining import join_and_serve

    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    logging.getLogger("httpx").setLevel(logging.WARNING)
    _import_from_here()
    from agentic.cli.output import say
    from agentic.local.program import command

    home = home_of(settings_of(context).folder)
    join_and_serve(app, home, port=port, say=say, again=command(home.folder))


def token(context: typer.Context, organization: Organization = None, person: Person = None) -> None:
    """Print a token for the local API, good for a day: the folder's own secret signs it, so no other server takes it."""
    from agentic.cli.records import home_of
    from agentic.local.tokens import sign

    home = home_of(settings_of(context).folder)
    who = home.identity()
    typer.echo(
        sign(
            home.token_secret(),
            organization_id=organization or who.organization_id,
            user_id=person or who.user_id,
        )
    )


def _import_from_here() -> None:
    """A console script has its own folder first on the path instead of this one; so would the workers it starts."""
    import os
    import sys
    from pathlib import Path

    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    listed = os.environ.get("PYTHONPATH", "")
    if here not in listed.split(os.pathsep):
        os.environ["PYTHONPATH"] = os.pathsep.join(part for part in (here, listed) if part)
