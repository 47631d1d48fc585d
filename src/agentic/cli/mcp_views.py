"""MCP servers and their tools for people and programs. What a server wrote is printed as text that nothing obeys. Pure.

A tool's state is its approval's: ``approved`` as it is declared now; ``waiting`` for a first one; ``changed`` since; ``withdrawn`` by the
server. ``rejected``, ``conflict`` and ``application_only`` are never offered, whatever a person says.
"""

import shlex
from collections.abc import Sequence
from typing import Any, Final, assert_never

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from agentic.api.mcp_views import drift_view, tool_views
from agentic.api.mcp_views import server_view as api_view
from agentic.cli.listings import field_table
from agentic.cli.safe_text import safe, safe_line
from agentic.cli.times import minute
from agentic.contract.json_types import JsonArray, JsonObject
from agentic.services.mcp.config import HttpEndpoint, StdioLaunch
from agentic.services.mcp.drift import Drift
from agentic.services.mcp.records import StoredServer

__all__ = [
    "class_words",
    "drift_text",
    "drift_view",
    "server_note",
    "server_sheet",
    "server_table",
    "server_view",
    "tool_table",
    "tool_views",
]

_NAME_WIDTH: Final = 32
_MARKS: Final = {"+": "green", "-": "red", "@": "cyan"}


def server_view(server: StoredServer) -> JsonObject:
    """A server as a JSON object, also how one of the deployment is reached. Of its environment the names alone."""
    return {**api_view(server), "organization_id": str(server.organization_id), **_endpoint(server)}


def server_table(servers: Sequence[JsonObject]) -> Table:
    """Servers, a row each."""
    table = _table("server", "transport", "state", "last seen", "note")
    for one in servers:
        seen = minute(str(one["seen_at"])) if one["seen_at"] else ""
        cells = (one["server_id"], one["transport"], one["state"], seen, server_note(one))
        table.add_row(*(safe_line(str(cell)) for cell in cells))
    return table


def server_sheet(server: JsonObject) -> RenderableType:
    """One server, field by field."""
    fields: dict[str, Any] = {"state": server["state"], "note": server_note(server)}
    for name, value in server.items():
        if name in fields or value in (None, [], {}, "", False):
            continue
        fields[name.replace("_", " ")] = _said(value) if name == "classification" else value
    for name, said in _object(fields.pop("per tool", None)).items():
        fields[f"of {safe_line(name)}"] = _said(said)
    shown = fields.pop("catalogs", [])
    lines = [f"{each['catalog']}  first seen {minute(each['first_seen'])}" for each in shown]
    return field_table({**fields, "catalogs": Text("\n".join(lines))} if lines else fields)


def tool_table(tools: JsonArray) -> Table:
    """Tools, a row each. A stranger's name is broken where it is long, so that it takes no other cell's room."""
    table = _table("tool", "state", "class", "remote name", "note")
    remote_name = table.columns[3]
    remote_name.no_wrap, remote_name.overflow, remote_name.max_width = False, "fold", _NAME_WIDTH
    for each in tools:
        one = _object(each)
        said = _said(one["class"]) if "class" in one else ""
        note = one.get("reason") or one.get("description") or ""
        cells = (one["name"] or "", str(one["state"]).replace("_", " "), said, one["remote_name"] or "", note)
        table.add_row(*(safe_line(str(cell)) for cell in cells))
    return table


def class_words(server: JsonObject, remote_name: str | None) -> str:
    """The class of one tool that has its own, or of all that have none, as a sentence goes on."""
    said = _object(server["classification"] if remote_name is None else _object(server["per_tool"])[remote_name])
    return f"a {said['side_effects']} of {said['risk']} risk, {said['idempotency']}"


def drift_text(drift: Drift) -> RenderableType:
    """What a person reads before they approve: everything that differs, in the server's words, marked as such."""
    parts: list[RenderableType] = []
    if drift.added:
        parts.append(Text(f"added: {', '.join(map(safe_line, drift.added))}"))
    if drift.withdrawn:
        parts.append(Text(f"withdrawn: {', '.join(map(safe_line, drift.withdrawn))}"))
    for change in drift.changed:
        where = ", ".join(change.fields) or "a part that is shown to nobody, such as the tail of a long description"
        parts.append(Text(f"\nchanged: {safe_line(change.remote_name)} ({where})", style="bold"))
        parts += [Text(f"  {safe(line)}", style=_MARKS.get(line[:1], "")) for line in change.lines]
    return Group(*parts)


def server_note(server: JsonObject) -> str:
    """What a person has to know of a server, or to do."""
    notes = []
    if server["launch_fault"] and server["state"] != "retired":
        notes.append(f"not started here: {server['launch_fault']}")
    if server["reason"]:
        notes.append(f"its last probe failed: {server['reason']}")
    if server["state"] == "registered":
        notes.append("not verified")
    if server["state"] == "verified":
        notes.append("not activated; no run has its tools")
    return "; ".join(notes)


def _table(*names: str) -> Table:
    """The last column takes what room is left, on as many lines as it needs; names are never cut."""
    table = Table(box=None, pad_edge=False, expand=True)
    for name in names[:-1]:
        table.add_column(name, no_wrap=True)
    table.add_column(names[-1], overflow="fold", ratio=1)
    return table


def _endpoint(server: StoredServer) -> JsonObject:
    endpoint = server.config.endpoint
    match endpoint:
        case HttpEndpoint(url=url):
            return {"transport": "http", "url": url, "launchable": True, "launch_fault": None}
        case StdioLaunch():
            known = server.launchable
            return {
                "transport": "stdio",
                "command": shlex.join(endpoint.command) if known else None,
                "variables": [*sorted(endpoint.variables)] if known else [],
                "home": endpoint.home if known else None,
                "start_s": endpoint.start_s if known else None,
                "launchable": known,
                "launch_fault": server.launch_fault,
            }
        case _ as never:
            assert_never(never)


def _said(value: Any) -> str:
    """A classification in a few words."""
    said = _object(value)
    words = [said["side_effects"], f"{said['risk']} risk", str(said["idempotency"]).replace("_", "-")]
    return ", ".join(map(str, [*words, *(["side by side"] if said["parallel_safe"] else [])]))


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
