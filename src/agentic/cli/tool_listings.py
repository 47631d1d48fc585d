"""Tools as people read them. Pure."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from agentic.cli.listings import field_table
from agentic.cli.safe_text import safe, safe_line
from agentic.cli.times import minute


def tool_table(tools: Sequence[Mapping[str, Any]]) -> Table:
    """Tools, by name; the description takes what room is left."""
    table = Table("tool", "version", "effect", "repeats", "risk", "mode", "state", "description", box=None)
    for tool in tools:
        cells = (tool["side_effects"], tool["idempotency"], tool["risk"], tool["mode"], state_of(tool))
        table.add_row(safe_line(tool["name"]), str(tool["version"]), *cells, safe_line(tool["description"]))
    return table


def tool_sheet(tool: Mapping[str, Any]) -> RenderableType:
    """One tool whole: contract, live state, versions, last changes."""
    apart = ("versions", "changes", "readable", "executable", "enabled", "withdrawn_at", "release", "in_flight")
    fields: dict[str, Any] = {"state": state_of(tool)}
    for name, value in tool.items():
        if name not in apart and value not in (None, [], ""):
            text = value if isinstance(value, str) else json.dumps(value, indent=2, ensure_ascii=False)
            fields[name] = Text(safe(text))
    versions = Table("version", "release", "first seen", "deprecated", "revoked", "contracts", box=None, pad_edge=False)
    for one in tool["versions"]:
        times = [minute(one[name]) if one[name] else "" for name in ("first_seen", "deprecated_at", "revoked_at")]
        contracts = ", ".join(one["contract_hashes"])
        versions.add_row(str(one["version"]), _release(one), *times, contracts)
    changes = [
        f"{minute(one['changed_at'])}  {one['change']}"
        + (f" version {one['version']}" if one["version"] is not None else "")
        + (f" ({one['in_flight']})" if one["in_flight"] else "")
        + f" by {one['changed_by'] or 'whoever administers the database'}"
        for one in tool["changes"]
    ]
    return Group(field_table(fields), Text(), versions, *([Text(), *map(Text, changes)] if changes else []))


def check_lines(found: Mapping[str, Any]) -> RenderableType:
    """What a check of an app found, a line each."""
    lines = [f"fault: {fault}" for fault in found["faults"]] + [f"note: {note}" for note in found["notes"]]
    counted = (
        f"{found['app']}: {len(found['tools'])} tools, {len(found['agents'])} agents, {len(found['faults'])} faults"
    )
    return Group(*(Text(safe_line(line)) for line in (*lines, counted)))


def state_of(tool: Mapping[str, Any]) -> str:
    """What is true of a tool now, in words."""
    if not tool["readable"]:
        return "unreadable"
    words = ["withdrawn" if tool["withdrawn_at"] else "enabled" if tool["enabled"] else "disabled"]
    if tool["release"] != "active":
        words.append(_release(tool))
    if not tool["executable"]:
        words.append("cannot run here")
    return ", ".join(words)


def _release(one: Mapping[str, Any]) -> str:
    return f"{one['release']} ({one['in_flight']})" if one["in_flight"] else str(one["release"])
