"""A product's own app over a script: the factory that an App takes."""

from agno.models.message import Message

from agentic import AgentDefinition, App
from agentic.testing import Call, Calls, Say, scripted


async def test_an_app_s_model_plays_the_script_from_where_the_history_stands() -> None:
    app = App(
        models={"rehearsal": scripted([Calls([Call("notes.save", {"text": "milk"})]), Say("Saved.")])},
        agents=[AgentDefinition(name="scribe", instructions="Keep notes.", model="rehearsal")],
    )
    make = app.models[app.agents[0].model]
    assert make() is not make()
    model = make()
    first = await model.ainvoke([Message(role="user", content="Milk.")])  # type: ignore[attr-defined]
    assert first.tool_calls[0]["function"]["name"] == "notes_save"
    again = [Message(role="user", content="Milk."), Message(role="assistant", content="")]
    assert (await model.ainvoke(again)).content == "Saved."  # type: ignore[attr-defined]
