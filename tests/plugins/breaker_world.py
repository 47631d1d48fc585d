"""An app whose model looks at the same page again and again, for a child process that dies while it looks."""

import os
from pathlib import Path

from pydantic import BaseModel

from agentic.bootstrap import App
from agentic.runtime.agent.agno.scripted import ScriptedModel
from agentic.runtime.agent.script import Turn
from agentic.services.tools.context import CallContext
from agentic.services.tools.declarations import internal_tool
from agentic.testing import Call, Calls, EffectLedger, Say, die
from agentic.testing.harness import MODEL

LEDGER, DIE_AT = "BREAKER_WORLD_LEDGER", "BREAKER_WORLD_DIE_AT"
SCRIPT: list[Turn] = [*[Calls([Call("page.look", {})])] * 4, Say("It never changed.")]


class Nothing(BaseModel):
    """No arguments."""


class Page(BaseModel):
    """What stands on the page."""

    text: str


@internal_tool("page.look", "Looks at the page.")
async def look(ctx: CallContext, args: Nothing) -> Page:
    """Note the look; at the one named in the environment this process dies."""
    ledger = EffectLedger(Path(os.environ[LEDGER]))
    ledger.record("look")
    if str(ledger.count()) == os.environ.get(DIE_AT):
        die()
    return Page(text="3 left")


def app() -> App:
    """The app of the child."""
    return App(tools=[look], models={MODEL: lambda: ScriptedModel(script=SCRIPT)})
