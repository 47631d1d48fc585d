"""From the name of a model to a model, or to a sentence that says what to do."""

import asyncio
import sys

import pytest

from agentic.contract.errors import ProgramFault
from agentic.runtime.agent.agno.pool import ModelPool
from agentic.runtime.agent.agno.providers import resolve
from agentic.runtime.agent.agno.runtime import AgnoLoop
from agentic.runtime.agent.agno.scripted import ScriptedModel


def test_a_registered_name_wins_over_a_model_string() -> None:
    assert isinstance(resolve("openai:gpt-4o", {"openai:gpt-4o": ScriptedModel}), ScriptedModel)


@pytest.mark.parametrize("name", ["gpt-4o", "", "openai:", ":gpt-4o", "  :x"])
def test_a_name_that_is_neither_registered_nor_a_model_string_is_refused_with_both_ways_out(name: str) -> None:
    with pytest.raises(ProgramFault, match=r"registered: rehearsal.*provider:model.*register it"):
        resolve(name, {"rehearsal": ScriptedModel})


@pytest.mark.parametrize(
    ("name", "variable"),
    [
        ("openai:gpt-4o", "OPENAI_API_KEY"),
        ("openai-chat:gpt-4o", "OPENAI_API_KEY"),
        ("anthropic:claude-test", "ANTHROPIC_API_KEY"),
        ("google:gemini-test", "GOOGLE_API_KEY"),
    ],
)
def test_a_missing_key_is_named_before_any_request(name: str, variable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for each in (
        "OPENAI_API_KEY",
        "ANTHROPIC_API_KEY",
        "ANTHROPIC_AUTH_TOKEN",
        "GOOGLE_API_KEY",
        "GOOGLE_GENAI_USE_VERTEXAI",
    ):
        monkeypatch.delenv(each, raising=False)
    loop = AgnoLoop()
    with pytest.raises(ProgramFault, match=f"set .*{variable}"):
        loop.check_model(name)
    monkeypatch.setenv(variable, "test-key")
    loop.check_model(name)


def test_a_provider_whose_package_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "groq", None)
    with pytest.raises(ProgramFault, match=r"needs a package that is not installed.*groq"):
        resolve("groq:any", {})


def test_a_provider_nobody_knows_is_refused() -> None:
    with pytest.raises(ProgramFault, match="not supported"):
        resolve("nobody:any", {})


def test_a_factory_is_called_once_in_each_event_loop() -> None:
    made: list[ScriptedModel] = []

    def factory() -> ScriptedModel:
        made.append(ScriptedModel())
        return made[-1]

    pool = ModelPool({"m": factory})

    async def twice() -> None:
        assert pool.get("m") is pool.get("m")

    asyncio.run(twice())
    asyncio.run(twice())
    assert len(made) == 2
