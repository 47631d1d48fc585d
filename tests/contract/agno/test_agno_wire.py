"""What a provider is told of a run's tools and instructions."""

from typing import Any

import pytest
from agno_dialects import ALL, CHAT, CLAUDE, RESPONSES, Dialect
from agno_stage import INSTRUCTIONS, SEARCH, TOOLS, StagedRun, frozen
from agno_wire import Reply, provider

from agentic.services.tools.models import SideEffects
from agentic.services.tools.schemas import provider_schema

RICH: dict[str, Any] = {
    "type": "object",
    "properties": {
        "to": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None},
        "who": {"$ref": "#/$defs/Person"},
        "tags": {"type": "array", "items": {"type": ["string", "null"]}},
    },
    "required": ["who"],
    "additionalProperties": False,
    "$defs": {"Person": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}},
}


async def _body(dialect: Dialect, tools: Any) -> dict[str, Any]:
    with provider([Reply(text="ok")], dialect.stream) as endpoint:
        await StagedRun(lambda: dialect.model(endpoint.base_url), tools=tools).turn()
        return endpoint.bodies[0]


@pytest.mark.parametrize("dialect", [CHAT, RESPONSES], ids=lambda dialect: dialect.name)
@pytest.mark.parametrize("effect", [SideEffects.READ, SideEffects.SEND])
async def test_the_schema_goes_out_as_the_projection_made_it(dialect: Dialect, effect: SideEffects) -> None:
    body = await _body(dialect, [frozen("mail.rich", effect, RICH)])
    assert dialect.schema(body, "mail_rich") == provider_schema(RICH)


async def test_nothing_of_the_pausing_is_told_to_the_provider() -> None:
    body = await _body(CHAT, TOOLS)
    assert [set(tool["function"]) for tool in body["tools"]] == [{"name", "description", "parameters", "strict"}] * 3
    assert all(tool["function"]["strict"] is False for tool in body["tools"])


@pytest.mark.parametrize("dialect", ALL, ids=lambda dialect: dialect.name)
async def test_every_dialect_is_shown_every_tool_under_its_model_facing_name(dialect: Dialect) -> None:
    body = await _body(dialect, TOOLS)
    for name in ("crm_search", "crm_upsert", "email_send"):
        assert dialect.schema(body, name) is not None


async def test_a_long_description_is_cut_where_the_model_can_see_it() -> None:
    body = await _body(CHAT, [frozen("crm.search", SideEffects.READ, description="long " * 700)])
    described = body["tools"][0]["function"]["description"]
    assert len(described) == 1024
    assert described.endswith("[cut]")


async def test_instructions_and_the_users_words_go_out_untemplated_and_instructions_are_never_stored() -> None:
    with provider([Reply(text="ok")], CLAUDE.stream) as endpoint:
        run = StagedRun(lambda: CLAUDE.model(endpoint.base_url), tools=[SEARCH], say="Dear {name}, {{x}}")
        await run.turn()
        body = endpoint.bodies[0]
    assert [block["text"] for block in body["system"]] == [INSTRUCTIONS]
    assert body["messages"][0]["content"][0]["text"] == "Dear {name}, {{x}}"
    assert [message.role for message in run.log] == ["user", "assistant"]
