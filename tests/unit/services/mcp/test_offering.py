"""Which tools of a server reach an organization's runs."""

from collections.abc import Mapping
from uuid import uuid4

from agentic.services.mcp.catalog import APPLICATION_ONLY, read_catalog
from agentic.services.mcp.config import HttpEndpoint, ServerConfig
from agentic.services.mcp.offering import offered
from agentic.services.tools.dynamic import admit

CONFIG = ServerConfig(server_id="notes", endpoint=HttpEndpoint(url="https://tools.vendor.example/mcp"))
SCHEMA = {"type": "object"}


def names(*entries: Mapping[str, object], resources: bool) -> list[str]:
    catalog = read_catalog("notes", entries)
    specs = offered(CONFIG, catalog, connection_id=uuid4(), resources=resources)
    return [spec.name for spec in admit(specs, "mcp", code=(), present=())[0]]


def test_what_is_for_applications_is_not_offered_and_resources_are_one_more_tool() -> None:
    shown = {"name": "find", "inputSchema": SCHEMA}
    hidden = {"name": "sync", "inputSchema": SCHEMA, "_meta": {APPLICATION_ONLY: True}}
    assert names(shown, hidden, resources=False) == ["mcp.notes.find"]
    assert names(shown, hidden, resources=True) == ["mcp.notes.find", "mcp.notes.read_resource"]


def test_a_tool_that_takes_the_readers_name_costs_both() -> None:
    shown, taken = {"name": "find", "inputSchema": SCHEMA}, {"name": "Read-Resource", "inputSchema": SCHEMA}
    assert names(shown, taken, resources=True) == ["mcp.notes.find"]
