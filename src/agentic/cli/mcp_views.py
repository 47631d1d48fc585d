"""MCP servers and their tools for people and programs. What a server wrote is printed as text that nothing obeys. Pure.

A tool's state is its approval's: ``approved`` as it is declared now; ``waiting`` for a first one; ``changed`` since; ``withdrawn`` by the
server. ``rejected``, ``conflict`` and ``application_only`` are never offered, whatever a person says.
"""

import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, assert_never

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from agentic.cli.listings import field_table
from agentic.cli.safe_text import safe, safe_line
from agentic.cli.times import minute
from agentic.contract.json_types import JsonArray, JsonObject
from agentic.services.mcp.catalog import RemoteTool
from agentic.services.mcp.config import Classification, HttpEndpoint, StdioLaunch
from agentic.services.mcp.drift import Drift
from agentic.services.mcp.records import Standing, StoredServer

if TYPE_CHECKING:
    from datetime import datetime

_MARKS: Final = {"+": "green", "-": "red", "@": "cyan"}


def server_view(server: StoredServer) -> JsonObject:
    """A server as a JSON object. Of its environment the names alone."""
    config = server.config
    return {
        "id": str(server.id),
        "organization_id": str(server.organization_id),
        "server_id": server.server_id,
        "owner": str(config.owner),
        "state": str(server.state),
        "revision": server.revision,
        **_endpoint(server),
        "auth": str(config.authentication.scheme),
        "connection_id": _text(server.connection_id),
        "connect_s": config.timeouts.connect_s,
        "request_s": config.timeouts.request_s,
        "classification": classification_view(config.classification),
        "per_tool": {name: classification_view(said) for name, said in sorted(config.per_tool.items())},
        "resources": server.resources,
        "offered_hash": server.offered_hash,
        "reason": server.reason,
        "failures": server.failures,
        "created_at": _time(server.created_at),
        "verified_at": _time(server.verified_at),
        "activated_at": _time(server.activated_at),
        "seen_at": _time(server.seen_at),
        "retired_at": _time(server.retired_at),
    }


def classification_view(said: Classification) -> JsonObject:
    """What an operator says of a tool."""
    return {
        "side_effects": str(said.side_effects),
        "risk": str(said.risk),
        "idempotency": str(said.idempotency),
        "parallel_safe": said.parallel_safe,
    }


def tool_views(standing: Standing) -> JsonArray:
    """Every tool that a server offers, offered or does not get to offer, a JSON object each; by state, then by name."""
    found: JsonArray = []
    for state, tools in (
        ("approved", standing.unchanged),
        ("changed", standing.quarantined),
        ("waiting", standing.waiting),
    ):
        for tool in tools:
            kept = "application_only" if tool.application_only else state
            found.append(_tool(standing, tool, kept))
    for name in standing.withdrawn:
        found.append(_tool(standing, standing.approved[name], "withdrawn"))
    for conflict in standing.offered.conflicts:
        why = f"one name for {', '.join(conflict.remote_names)}"
        found.append({"remote_name": None, "name": conflict.name, "state": "conflict", "reason": why})
    for rejected in standing.offered.rejected:
        found.append(
            {"remote_name": rejected.remote_name, "name": None, "state": "rejected", "reason": rejected.reason}
        )
    return found


def drift_view(drift: Drift) -> JsonObject:
    """A difference as a JSON object."""
    return {"nothing": drift.nothing, **drift.model_dump(mode="json")}


def server_table(servers: Sequence[JsonObject]) -> Table:
    """Servers, a row each."""
    table = Table("server", "transport", "state", "last seen", "note", box=None, pad_edge=False)
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
    """Tools, a row each."""
    table = Table("tool", "state", "class", "remote name", "note", box=None, pad_edge=False)
    for each in tools:
        one = _object(each)
        said = _said(one["class"]) if "class" in one else ""
        note = one.get("reason") or one.get("description") or ""
        cells = (one["name"] or "", str(one["state"]).replace("_", " "), said, one["remote_name"] or "", note)
        table.add_row(*(safe_line(str(cell)) for cell in cells))
    return table


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
    if server["transport"] == "stdio" and not server["launchable"]:
        notes.append("its command is not in this deployment's file")
    if server["reason"]:
        notes.append(f"its last probe failed: {server['reason']}")
    if server["state"] == "registered":
        notes.append("not verified")
    if server["state"] == "verified":
        notes.append("not activated; no run has its tools")
    return "; ".join(notes)


def _endpoint(server: StoredServer) -> JsonObject:
    endpoint = server.config.endpoint
    match endpoint:
        case HttpEndpoint(url=url):
            return {"transport": "http", "url": url, "launchable": True}
        case StdioLaunch():
            known = server.launchable
            return {
                "transport": "stdio",
                "command": shlex.join(endpoint.command) if known else None,
                "variables": [*sorted(endpoint.variables)] if known else [],
                "home": endpoint.home if known else None,
                "launchable": known,
            }
        case _ as never:
            assert_never(never)


def _tool(standing: Standing, tool: RemoteTool, state: str) -> JsonObject:
    said = standing.server.config.classified(tool.remote_name)
    return {
        "remote_name": tool.remote_name,
        "name": tool.name,
        "state": state,
        "class": classification_view(said),
        "classified": tool.remote_name in standing.server.config.per_tool,
        "description": tool.description,
        "declaration_hash": tool.declaration_hash,
    }


def _said(value: Any) -> str:
    """A classification in a few words."""
    said = _object(value)
    words = [said["side_effects"], f"{said['risk']} risk", str(said["idempotency"]).replace("_", "-")]
    return ", ".join(map(str, [*words, *(["side by side"] if said["parallel_safe"] else [])]))


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _text(value: object) -> str | None:
    return None if value is None else str(value)


def _time(when: "datetime | None") -> str | None:
    return None if when is None else when.isoformat()
