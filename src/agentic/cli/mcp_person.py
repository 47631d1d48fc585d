"""The person at the command line, who is shown a call that asks and may answer it."""

from collections.abc import Mapping
from typing import Any

from agentic.cli.mcp_calling import Ask
from agentic.cli.output import say
from agentic.local.demo.asking import as_verdict, can_ask, read_line


def asked_here(*, yes: bool) -> Ask:
    """Shows the card on standard error and reads the answer.

    Args:
        yes: answer with yes and do not ask. Without it and without a terminal the question is left open.
    """

    async def ask(approval: Mapping[str, Any]) -> bool | None:
        from rich.console import Console

        from agentic.cli.approval_card import approval_card

        console = Console(stderr=True, markup=False, highlight=False, emoji=False)
        console.print(approval_card(approval))
        if yes:
            say("--yes answers.")
            return True
        if not can_ask():
            return None
        while True:
            console.print("Approve this call? [y/n] ", end="")
            line = await read_line()
            verdict = None if line is None else as_verdict(line)
            if line is None or verdict is not None:
                return verdict

    return ask
