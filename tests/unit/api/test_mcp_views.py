"""MCP servers as JSON: what a server wrote is labelled, and how one of the deployment is reached is told nobody."""

import json
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest

from agentic.api.mcp_views import declared_view, drift_view, server_view, standing_view
from agentic.services.mcp.catalog import catalog_of, read_catalog
from agentic.services.mcp.config import (
    Authentication,
    AuthScheme,
    Endpoint,
    HttpEndpoint,
    Owner,
    ServerConfig,
    StdioLaunch,
)
from agentic.services.mcp.drift import drift
from agentic.services.mcp.records import Declared, ServerState, Standing, StoredServer

THEN = datetime(2031, 2, 3, 4, 5, tzinfo=UTC)
CONNECTION = UUID(int=3)
FAR = HttpEndpoint(url="https://tools.vendor.test/mcp")


def stored(endpoint: Endpoint, owner: Owner = Owner.TENANT, **auth: Any) -> StoredServer:
    authentication = Authentication(credential_ref=str(CONNECTION), **auth)
    return StoredServer(
        id=UUID(int=1),
        organization_id=UUID(int=2),
        config=ServerConfig(server_id="notes", owner=owner, endpoint=endpoint, authentication=authentication),
        state=ServerState.ACTIVE,
        revision=3,
        endpoint_revision=1,
        connection_id=CONNECTION,
        offered_hash=None,
        resources=False,
        reason=None,
        failures=0,
        verified_at=THEN,
        activated_at=THEN,
        retired_at=None,
        seen_at=THEN,
        created_at=THEN,
    )


def listed(name: str, description: str = "Does it.") -> dict[str, Any]:
    return {"name": name, "description": description, "inputSchema": {"type": "object"}}


def test_an_organizations_own_server_says_how_it_is_reached_and_by_which_connection() -> None:
    view = server_view(
        stored(FAR, scheme=AuthScheme.OAUTH2_CLIENT, token_endpoint="https://login.vendor.test/t", token_scopes=("a",))
    )
    assert {name: view[name] for name in ("url", "auth", "connection_id", "token_endpoint", "token_scopes")} == {
        "url": "https://tools.vendor.test/mcp",
        "auth": "oauth2_client",
        "connection_id": str(CONNECTION),
        "token_endpoint": "https://login.vendor.test/t",
        "token_scopes": ["a"],
    }
    assert view["seen_at"] == "2031-02-03T04:05:00+00:00"
    assert json.loads(json.dumps(view)) == view


@pytest.mark.guarantee("T2")
def test_a_server_of_the_deployment_says_nothing_of_where_it_is() -> None:
    launch = StdioLaunch(command=("/opt/kiln", "--all"), variables={"LEVEL": "high"}, home="/srv/kiln")
    inner = HttpEndpoint(url="http://127.0.0.1:9000/kiln")
    for server in (
        stored(launch, Owner.OPERATOR, scheme=AuthScheme.ENV, name="KILN_KEY"),
        stored(inner, Owner.OPERATOR, scheme=AuthScheme.HEADER, name="X-Kiln"),
    ):
        text = json.dumps(server_view(server)).lower()
        assert not any(word in text for word in ("kiln", "9000", "level"))
        assert str(CONNECTION) in text


@pytest.mark.guarantee("B3")
def test_whatever_holds_words_of_a_server_is_labelled() -> None:
    before, now = (
        read_catalog("notes", [listed("find")]),
        read_catalog("notes", [listed("find", "New."), listed("x"), 7]),
    )
    standing = Standing(server=stored(FAR), offered=now, approved={"find": before.tools[0]})
    tools: Any = standing_view(standing)["tools"]
    assert [(tool["state"], tool["trust"]) for tool in tools] == [
        ("changed", "external"),
        ("waiting", "external"),
        ("rejected", "external"),
    ]
    assert drift_view(drift(catalog_of(before.tools), now))["trust"] == "external"
    declared = Declared(
        catalog_hash="c1:0",
        tool=before.tools[0],
        discovered_at=THEN,
        withdrawn_at=None,
        approved_at=THEN,
        approved_by=UUID(int=4),
    )
    view = declared_view(declared)
    assert (view["trust"], view["input_schema"], view["approved_by"]) == (
        "external",
        {"type": "object"},
        str(UUID(int=4)),
    )
