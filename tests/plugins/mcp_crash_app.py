"""The app of a worker that is killed in the middle of a call to an MCP server; the server is in the database, as everywhere."""

from agentic.bootstrap import App
from agentic.runtime.agent.agno.scripted import ScriptedModel
from agentic.runtime.agent.script import Call, Calls, Say, Turn

SCRIPT: list[Turn] = [Calls([Call("mcp.scripted.pay", {"cents": 500})]), Say("Done.")]


def make() -> App:
    """The app, as the child process imports it."""
    return App(models={"scripted": lambda: ScriptedModel(script=SCRIPT)})
