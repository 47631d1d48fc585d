"""What of a server is offered follows from what it offers and what was approved, and from nothing else."""

from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import pytest

from agentic.services.mcp.catalog import Catalog, catalog_of, read_catalog
from agentic.services.mcp.config import HttpEndpoint, ServerConfig
from agentic.services.mcp.records import ServerState, Standing, StoredServer


def catalog(**words: str) -> Catalog:
    raw = [{"name": name, "description": said, "inputSchema": {"type": "object"}} for name, said in words.items()]
    return read_catalog("notes", raw)


def standing(offered: Catalog, approved: Catalog) -> Standing:
    server = StoredServer(
        id=uuid4(),
        organization_id=uuid4(),
        config=ServerConfig(server_id="notes", endpoint=HttpEndpoint(url="https://notes.vendor.example/mcp")),
        state=ServerState.ACTIVE,
        revision=1,
        endpoint_revision=1,
        connection_id=None,
        offered_hash=offered.catalog_hash,
        resources=False,
        reason=None,
        failures=0,
        verified_at=None,
        activated_at=None,
        retired_at=None,
        seen_at=None,
        created_at=datetime.now(UTC),
    )
    return Standing(server=server, offered=offered, approved={tool.remote_name: tool for tool in approved.tools})


def names(tools: Any) -> list[str]:
    return [tool.remote_name for tool in tools]


@pytest.mark.guarantee("T4")
def test_a_tool_is_offered_as_it_was_approved_or_not_at_all() -> None:
    found = standing(catalog(same="x", changed="y", new="z"), catalog(same="x", changed="x", gone="x"))
    assert (names(found.unchanged), names(found.quarantined)) == (["same"], ["changed"])
    assert (names(found.waiting), found.withdrawn) == (["new"], ("gone",))
    assert found.quarantined[0].description == "y", "as it is declared now"


def test_a_server_that_goes_back_to_what_was_approved_is_offered_by_itself() -> None:
    approved = catalog(a="x", b="x")
    assert standing(catalog(a="other", b="x"), approved).unchanged == approved.tools[1:]
    assert standing(approved, approved).unchanged == approved.tools


def test_what_was_approved_is_the_catalog_it_came_from_when_nothing_else_was_in_it() -> None:
    whole = catalog(a="x", b="y")
    assert catalog_of(tuple(reversed(whole.tools))) == whole
    rejecting = read_catalog("notes", [{"name": "a", "inputSchema": {"type": "object"}}, {"name": "bad"}])
    assert catalog_of(rejecting.tools).catalog_hash != rejecting.catalog_hash
