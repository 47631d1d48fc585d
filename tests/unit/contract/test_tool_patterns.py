"""One pattern names all tools of a server. Everything else is a name."""

from uuid import uuid4

import pytest

from agentic.contract.principal import Principal
from agentic.contract.tool_patterns import covers, is_pattern, names_remote


@pytest.mark.parametrize(
    "name", ["mcp.*", "*", "mcp.notes.fi*", "crm.*", "mcp.Notes.*", "mcp.notes.*.x", "mcp..*", "mcp.a.b.*"]
)
def test_nothing_but_a_server_is_named_by_a_pattern(name: str) -> None:
    assert not is_pattern(name)
    assert covers(name, name) and not covers(name, "mcp.notes.find")


def test_a_pattern_covers_the_tools_of_its_server_alone() -> None:
    assert is_pattern("mcp.notes.*")
    assert covers("mcp.notes.*", "mcp.notes.find")
    assert not covers("mcp.notes.*", "mcp.notes_2.find")
    assert not covers("mcp.notes.find", "mcp.notes.*")


def test_a_principals_scopes_may_hold_a_whole_server() -> None:
    scoped = Principal(organization_id=uuid4(), scopes=("crm.find", "mcp.notes.*"))
    named = ("crm.find", "crm.save", "mcp.notes.find", "mcp.wiki.find")
    assert [name for name in named if scoped.may_name(name)] == ["crm.find", "mcp.notes.find"]


def test_a_name_of_a_servers_tool_is_told_by_its_domain() -> None:
    assert names_remote(["crm.find", "mcp.notes.find"]) and names_remote(["mcp.notes.*"])
    assert not names_remote(["crm.find", "mcpx.find"]) and not names_remote([])
