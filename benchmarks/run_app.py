"""The app whose runs are measured: one agent that only answers, one that sends after a person said yes."""

from pydantic import BaseModel

from agentic.bootstrap import App
from agentic.runtime.agent.agno.scripted import ScriptedModel
from agentic.runtime.agent.definition import AgentDefinition
from agentic.runtime.agent.script import Call, Calls, Say
from agentic.services.tools.context import CallContext
from agentic.services.tools.declarations import internal_tool

PATH = "benchmarks.run_app:app"


class Words(BaseModel):
    """What is sent."""

    text: str


class Sent(BaseModel):
    """That it was."""

    text: str


@internal_tool("bench.send", "Sends a note.", side_effects="write", risk="medium", repeatable=False)
async def send(_ctx: CallContext, args: Words) -> Sent:
    """An effect that costs nothing itself; the built-in matrix asks a person first."""
    return Sent(text=args.text)


ANSWERS = AgentDefinition(name="answers", instructions="Answer.", model="answers")
SENDS = AgentDefinition(name="sends", instructions="Send.", model="sends", tools=("bench.send",))

app = App(
    tools=[send],
    agents=[ANSWERS, SENDS],
    models={
        "answers": lambda: ScriptedModel(script=[Say("Done.")]),
        "sends": lambda: ScriptedModel(script=[Calls([Call("bench.send", {"text": "One note."})]), Say("Sent.")]),
    },
)
