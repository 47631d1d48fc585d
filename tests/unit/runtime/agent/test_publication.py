"""A definition that may not be published says so before anything of it runs."""

from typing import Any

import pytest
from pydantic import BaseModel

from agentic.contract.errors import ProgramFault
from agentic.runtime.agent.definition import AgentDefinition
from agentic.runtime.agent.publication import check_publication
from agentic.services.tools.context import CallContext
from agentic.services.tools.declarations import internal_tool
from agentic.services.tools.models import Risk, SideEffects, ToolSpec


class Words(BaseModel):
    text: str


def spec(name: str, **declared: Any) -> ToolSpec:
    async def handler(ctx: CallContext, args: Words) -> list[str]:
        return []

    return internal_tool(name, "Does.", **declared)(handler).spec


SPECS = {
    one.name: one
    for one in (
        spec("crm.find"),
        spec("crm.save", side_effects="write", repeatable=False, risk="high"),
        spec("mail.send", side_effects="send", repeatable=False, connection="mail", may_repeat_because="a test"),
    )
}


def agent(*tools: str, **fields: Any) -> AgentDefinition:
    return AgentDefinition(name="scribe", instructions="Write.", model="m", tools=tools or tuple(SPECS), **fields)


def test_every_tool_beyond_the_maximum_class_is_named_with_what_it_is() -> None:
    with pytest.raises(ProgramFault) as raised:
        check_publication(agent(maximum_class=SideEffects.READ, maximum_risk=Risk.MEDIUM), SPECS.get)
    message = str(raised.value)
    assert (
        "scribe may not have crm.save: it is a write, and at most read is allowed; of high risk, and at most medium is allowed"
        in message
    )
    assert "scribe may not have mail.send: it is a send, and at most read is allowed" in message
    assert "crm.find" not in message


@pytest.mark.parametrize("fields", [{}, {"maximum_class": "send"}, {"maximum_risk": "high"}])
def test_a_definition_within_its_bound_is_published(fields: dict[str, Any]) -> None:
    check_publication(agent(**fields), SPECS.get)


def test_a_tool_that_is_not_here_yet_is_no_fault() -> None:
    check_publication(agent("mcp.wiki.search", maximum_class="none"), SPECS.get)


@pytest.mark.guarantee("N1")
def test_more_tools_than_a_provider_takes_are_counted_before_the_provider_counts_them() -> None:
    with pytest.raises(ProgramFault, match="scribe names 129 tools; providers take at most 128"):
        check_publication(agent(*(f"crm.t{number}" for number in range(129))), SPECS.get)
    check_publication(agent(*(f"crm.t{number}" for number in range(128)), "crm.t1"), SPECS.get)
