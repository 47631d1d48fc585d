"""MCP servers and their tools as JSON. Pure; imports no web framework.

An object that holds words of a server says ``"trust": "external"``: its names, descriptions, reasons and lines are a stranger's, to be
shown and never to be followed (B3). How a server of the deployment is reached is the deployment's, and in no answer (T2).
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

from agentic.contract.json_types import JsonArray, JsonObject, JsonValue
from agentic.contract.plain import plain
from agentic.contract.trust import Trust
from agentic.services.mcp.catalog import RemoteTool
from agentic.services.mcp.config import Classification, HttpEndpoint, Owner, ServerConfig
from agentic.services.mcp.drift import Drift
from agentic.services.mcp.records import Declared, Standing, StoredServer

_EXTERNAL: Final = {"trust": str(Trust.EXTERNAL)}


def server_view(server: StoredServer) -> JsonObject:
    """A server: where it is in its life, how an organization's own is reached, and what was said of its tools."""
    config = server.config
    return {
        "id": str(server.id),
        "server_id": server.server_id,
        "owner": str(config.owner),
        "state": str(server.state),
        "revision": server.revision,
        **_reached(config),
        "connection_id": None if server.connection_id is None else str(server.connection_id),
        "connect_s": config.timeouts.connect_s,
        "request_s": config.timeouts.request_s,
        "max_output_bytes": config.max_output_bytes,
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


def standing_view(standing: Standing) -> JsonObject:
    """A server with every tool that it offers or that was approved of it."""
    return {**server_view(standing.server), "tools": tool_views(standing)}


def classification_view(said: Classification) -> JsonObject:
    """What a person says of a tool."""
    return {
        "side_effects": str(said.side_effects),
        "risk": str(said.risk),
        "idempotency": str(said.idempotency),
        "parallel_safe": said.parallel_safe,
    }


def tool_views(standing: Standing) -> JsonArray:
    """Every tool, a JSON object each; by state, then by name (docs/mcp.md lists the states)."""
    sorts = (("approved", standing.unchanged), ("changed", standing.quarantined), ("waiting", standing.waiting))
    found = [
        _tool(standing, tool, "application_only" if tool.application_only else state)
        for state, tools in sorts
        for tool in tools
    ]
    found += [_tool(standing, standing.approved[name], "withdrawn") for name in standing.withdrawn]
    for conflict in standing.offered.conflicts:
        why = f"one name for {', '.join(conflict.remote_names)}"
        found.append({"remote_name": None, "name": conflict.name, "state": "conflict", "reason": why, **_EXTERNAL})
    for rejected in standing.offered.rejected:
        shown: JsonObject = {"remote_name": rejected.remote_name, "name": None, "state": "rejected"}
        found.append({**shown, "code": str(rejected.code), "reason": rejected.reason, **_EXTERNAL})
    return [_object(each) for each in found]


def drift_view(drift: Drift) -> JsonObject:
    """What a server offers beside what was approved of it."""
    return _object({"nothing": drift.nothing, **drift.model_dump(), **_EXTERNAL})


def approved_view(server_id: str, remote_names: Sequence[str]) -> JsonObject:
    """Which tools were approved as they are declared now."""
    return _object({"server_id": server_id, "approved": remote_names, **_EXTERNAL})


def declared_view(declared: Declared) -> JsonObject:
    """One declaration of a tool, whole, as its server wrote it."""
    return _object(
        {
            **declared.tool.model_dump(),
            "catalog_hash": declared.catalog_hash,
            "discovered_at": declared.discovered_at,
            "withdrawn_at": declared.withdrawn_at,
            "approved_at": declared.approved_at,
            "approved_by": declared.approved_by,
            **_EXTERNAL,
        }
    )


def _reached(config: ServerConfig) -> JsonObject:
    auth, endpoint = config.authentication, config.endpoint
    told = config.owner is Owner.TENANT
    return {
        "transport": endpoint.type,
        "url": endpoint.url if told and isinstance(endpoint, HttpEndpoint) else None,
        "auth": str(auth.scheme),
        "auth_name": auth.name if told else None,
        "token_endpoint": auth.token_endpoint if told else None,
        "token_scopes": [*auth.token_scopes] if told else [],
    }


def _tool(standing: Standing, tool: RemoteTool, state: str) -> JsonObject:
    config = standing.server.config
    return {
        "remote_name": tool.remote_name,
        "name": tool.name,
        "state": state,
        "class": classification_view(config.classified(tool.remote_name)),
        "classified": tool.remote_name in config.per_tool,
        "description": tool.description,
        "declaration_hash": tool.declaration_hash,
        **_EXTERNAL,
    }


def _object(value: dict[str, Any]) -> JsonObject:
    """With what a stranger may write and JSON's readers do not take made visible."""
    shown: JsonValue = plain(value)
    assert isinstance(shown, dict)
    return shown


def _time(when: datetime | None) -> str | None:
    return None if when is None else when.isoformat()
