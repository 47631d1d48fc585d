"""MCP servers as people and programs see them: every state of a tool by name, and nothing of a server's words that a terminal obeys."""

import dataclasses
import json
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest
from rich.console import Console, RenderableType

from agentic.cli.mcp_remedies import told
from agentic.cli.mcp_views import (
    drift_text,
    drift_view,
    server_sheet,
    server_table,
    server_view,
    tool_table,
    tool_views,
)
from agentic.services.mcp.catalog import Catalog, catalog_of, read_catalog
from agentic.services.mcp.config import Classification, HttpEndpoint, Owner, ServerConfig, StdioLaunch
from agentic.services.mcp.drift import drift
from agentic.services.mcp.failures import RemoteFailure, Trouble
from agentic.services.mcp.records import ServerState, Standing, StoredServer
from agentic.services.tools.models import IdempotencyClass, Risk, SideEffects

THEN = datetime(2026, 2, 3, 4, 5, tzinfo=UTC)
READ = Classification(
    side_effects=SideEffects.READ, risk=Risk.LOW, idempotency=IdempotencyClass.READ_ONLY, parallel_safe=True
)


def declared(name: str, description: str = "It does something.", **more: Any) -> dict[str, Any]:
    return {"name": name, "description": description, "inputSchema": {"type": "object", "properties": {}}, **more}


def catalog(*tools: dict[str, Any]) -> Catalog:
    return read_catalog("pottery", tools)


def stored(endpoint: StdioLaunch | HttpEndpoint, **changes: Any) -> StoredServer:
    server = StoredServer(
        id=UUID(int=1),
        organization_id=UUID(int=2),
        config=ServerConfig(
            server_id="pottery", owner=Owner.OPERATOR, endpoint=endpoint, per_tool={"find": READ, "gone": READ}
        ),
        state=ServerState.ACTIVE,
        revision=3,
        endpoint_revision=1,
        connection_id=None,
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
    return dataclasses.replace(server, **changes)


STDIO = stored(StdioLaunch(command=("npx", "-y", "two words"), variables={"LEVEL": "hush-4711"}, home="/srv/home"))


def printed(shown: RenderableType) -> str:
    console = Console(width=200, color_system=None, force_terminal=False)
    with console.capture() as capture:
        console.print(shown)
    return capture.get()


def test_each_tool_has_the_state_that_its_approval_and_its_server_give_it() -> None:
    approved = catalog(declared("find"), declared("write"), declared("gone"))
    offered = catalog(
        declared("find"),
        declared("write", "It writes now to everybody."),
        declared("new"),
        declared("apps", _meta={"agentic/application-only": True}),
        declared("Same"),
        declared("same"),
        {"name": "shapeless"},
    )
    standing = Standing(server=STDIO, offered=offered, approved={tool.remote_name: tool for tool in approved.tools})
    views: list[Any] = tool_views(standing)
    states = {view["remote_name"] or view["name"]: view["state"] for view in views}
    assert states == {
        "find": "approved",
        "write": "changed",
        "new": "waiting",
        "apps": "application_only",
        "gone": "withdrawn",
        "mcp.pottery.same": "conflict",
        "shapeless": "rejected",
    }
    by_name = {view["remote_name"]: view for view in views}
    assert by_name["find"]["class"] == {
        "side_effects": "read",
        "risk": "low",
        "idempotency": "read_only",
        "parallel_safe": True,
    }
    assert by_name["new"]["class"]["side_effects"] == "send"
    assert (by_name["find"]["classified"], by_name["new"]["classified"]) == (True, False)
    table = printed(tool_table(views))
    assert "read, low risk, read-only, side by side" in table
    assert "one name for Same, same" in table
    assert "it declares no input schema" in table
    assert json.loads(json.dumps(views)) == views


def test_a_tool_with_a_long_name_takes_no_other_tools_state_out_of_the_table() -> None:
    offered = catalog(declared("x" * 128), declared("find"), {**declared("y" * 5_000)})
    views = tool_views(Standing(server=STDIO, offered=offered, approved={}))
    console = Console(width=120, color_system=None, force_terminal=False)
    with console.capture() as capture:
        console.print(tool_table(views))
    text = capture.get()
    assert (text.count("waiting"), text.count("rejected")) == (2, 1)
    assert "high risk, non-idempotent" in text


@pytest.mark.guarantee("A1")
def test_a_servers_words_move_no_cursor_and_turn_no_line() -> None:
    hostile = "Nice\x1b[2J\u202etool\nsecond line"
    old, new = catalog(declared("find")), catalog(declared("find", hostile))
    standing = Standing(server=STDIO, offered=new, approved={tool.remote_name: tool for tool in old.tools})
    for shown in (tool_table(tool_views(standing)), drift_text(drift(catalog_of(old.tools), new))):
        text = printed(shown)
        assert "\x1b" not in text
        assert "\u202e" not in text
        assert "\\u202e" in text
    failure = RemoteFailure(Trouble.HANDSHAKE, "no handshake", stderr="first\n\x1b[31mred")
    assert "\x1b" not in told(failure, "notes")
    assert "\\x1b[31mred" in told(failure, "notes")
    words = told(
        RemoteFailure(Trouble.HANDSHAKE, "no handshake", external_text="needs\x1b[2J\nroots" + "x" * 9_000), "notes"
    )
    assert words.partition("\n")[2].startswith("the server says: needs\\x1b[2J\\nroots")
    assert len(words) < 1_000
    assert "configure notes --connect-timeout" in told(RemoteFailure(Trouble.CONNECT_TIMEOUT, "it was late"), "notes")


def test_a_server_shows_its_command_and_the_names_of_its_settings_alone() -> None:
    view = server_view(STDIO)
    assert (view["transport"], view["command"], view["variables"]) == ("stdio", "npx -y 'two words'", ["LEVEL"])
    assert "hush" not in json.dumps(view)
    sheet = printed(server_sheet(view))
    assert "of find" in sheet
    assert "hush" not in sheet


def test_a_person_is_told_what_keeps_a_server_from_being_used() -> None:
    away = server_view(
        dataclasses.replace(STDIO, launch_fault="/srv/servers.json has no command for it", state=ServerState.VERIFIED)
    )
    assert away["command"] is None
    table = printed(server_table([away]))
    assert "not started here: /srv/servers.json has no command for it" in table
    assert "not activated" in table
    far = stored(HttpEndpoint(url="https://tools.vendor.example/mcp"), state=ServerState.DEGRADED, reason="connect")
    view = server_view(far)
    assert (view["transport"], view["url"]) == ("http", "https://tools.vendor.example/mcp")
    assert "its last probe failed: connect" in printed(server_sheet(view))


def test_a_difference_names_what_came_what_went_and_every_line_that_changed() -> None:
    old = catalog(declared("find", "Old words."), declared("gone"))
    found = drift(old, catalog(declared("find", "New words."), declared("new")))
    text = printed(drift_text(found))
    assert all(line in text for line in ("added: new", "withdrawn: gone", "changed: find (description)"))
    assert "-Old words." in text
    assert "+New words." in text
    view: Any = drift_view(found)
    assert (view["added"], view["withdrawn"], view["changed"][0]["remote_name"]) == (["new"], ["gone"], "find")
    assert drift_view(drift(old, old))["nothing"] is True


@pytest.mark.parametrize("trouble", list(Trouble))
def test_every_way_to_fail_has_something_a_person_can_do(trouble: Trouble) -> None:
    text = told(RemoteFailure(trouble, "what happened", status=503), "notes")
    assert text.startswith(f"{trouble}: what happened, status 503; ")
    assert len(text.partition("; ")[2]) > 10
