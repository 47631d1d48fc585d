"""``agentic serve``: its options. The process itself is ``serving``'s."""

from typing import Annotated

import typer

from agentic.cli.options import settings_of

DEFAULT_PORT = 8400


def serve(
    context: typer.Context,
    app: Annotated[str, typer.Option("--app", metavar="MODULE:NAME", help="Where your App is, such as my.module:app.")],
    port: Annotated[int, typer.Option(min=0, max=65535, help="On 127.0.0.1; 0 takes a free one.")] = DEFAULT_PORT,
) -> None:
    """Serve the API and the durable functions of an app in one process, until SIGTERM or Ctrl-C."""
    from agentic.cli.records import home_of
    from agentic.cli.serving import serve_until_stopped

    code = serve_until_stopped(app, home=home_of(settings_of(context).folder), port=port)
    raise typer.Exit(code)
