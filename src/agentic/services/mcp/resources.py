"""The resources of a server as one tool that reads them: a model asks for one, nothing of them enters a context by itself.

An address counts only when the server lists it, so that the tool is no way to make a server fetch what a model made up.
"""

from collections.abc import Mapping
from typing import Any, Final
from uuid import UUID

from pydantic import BaseModel

from agentic.contract.json_types import JsonObject
from agentic.contract.results import ErrorCode
from agentic.contract.trust import Trust
from agentic.services.mcp.asking import Asking, RunMarks
from agentic.services.mcp.config import ServerConfig
from agentic.services.mcp.discovery import paged
from agentic.services.mcp.failures import RemoteFailure, Trouble
from agentic.services.mcp.results import MAX_BLOCKS, in_parts, read_resource
from agentic.services.mcp.servers import Connection, RemoteServer
from agentic.services.tools.context import CallContext
from agentic.services.tools.handlers.errors import DefiniteRefusal, ToolGone
from agentic.services.tools.models import STEP_BUDGET_S, IdempotencyClass, RemoteBinding, Risk, SideEffects, ToolSpec

READ_RESOURCE: Final = "read_resource"
BINDING: Final = "resources/read"
"""The remote name in the binding of this tool; the method, as there is no remote tool."""
MAX_URI: Final = 2_048
_LIST: Final = "resources/list"
_MAX_LISTED: Final = 200


def resource_spec(config: ServerConfig, *, connection_id: UUID) -> ToolSpec:
    """The one tool of a server that offers resources. Its words are ours, so are its class and its risk: a read of a stranger's data."""
    return ToolSpec(
        name=f"mcp.{config.server_id}.{READ_RESOURCE}",
        description=(
            "Reads one of the resources that this server lists. With an empty uri it answers the list: "
            "the uri, name and media type of each."
        ),
        input_schema={
            "type": "object",
            "properties": {"uri": {"type": "string", "maxLength": MAX_URI}},
            "required": ["uri"],
            "additionalProperties": False,
        },
        output_schema={},
        kind="mcp",
        binding=RemoteBinding(connection_id=connection_id, remote_name=BINDING),
        side_effects=SideEffects.READ,
        idempotency=IdempotencyClass.READ_ONLY,
        risk=Risk.LOW,
        output_trust=Trust.EXTERNAL,
        source="mcp",
        timeout_s=min(config.timeouts.request_s, STEP_BUDGET_S),
        max_output_bytes=config.max_output_bytes,
        parallel_safe=False,
    )


class ResourceHandler:
    """The code behind it."""

    def __init__(self, server: RemoteServer, *, marks: RunMarks) -> None:
        self._asking = Asking(server, IdempotencyClass.READ_ONLY, marks=marks, still_offered=self._gone)

    async def execute(self, ctx: CallContext, args: BaseModel) -> JsonObject:
        """List, or read what is listed.

        Raises:
            DefiniteRefusal: no such resource, or the server gave none.
        """
        ctx.lower_trust(Trust.EXTERNAL)
        uri = str(args.model_dump()["uri"])
        listed = await self._listed(ctx)
        if not uri:
            shown = [_entry(each) for each in listed[:_MAX_LISTED]]
            left = len(listed) - len(shown)
            return {"resources": list(shown), **({"left_out": left} if left else {})}
        if all(each.get("uri") != uri for each in listed):
            raise DefiniteRefusal(f"{self._asking.server_id}: it lists no such resource", code=ErrorCode.NOT_FOUND)
        raw = await self._asking.answer(ctx, BINDING, {"uri": uri})
        contents = raw.get("contents")
        if not isinstance(contents, list):
            raise DefiniteRefusal(
                f"{self._asking.server_id}: the resource is no list of contents", code=ErrorCode.INVALID_OUTPUT
            )
        parts = [each for each in contents[:MAX_BLOCKS] if isinstance(each, Mapping)]
        return {"contents": in_parts(read_resource(each, keep=ctx.save_artifact) for each in parts)}

    async def _listed(self, ctx: CallContext) -> list[Mapping[str, Any]]:
        async def ask(params: Mapping[str, Any]) -> dict[str, Any]:
            return await self._asking.answer(ctx, _LIST, params)

        try:
            entries = await paged(ask, key="resources")
        except RemoteFailure as failure:
            code = ErrorCode.OUTPUT_TOO_LARGE if failure.trouble is Trouble.TOO_LARGE else ErrorCode.INVALID_OUTPUT
            raise DefiniteRefusal(f"{self._asking.server_id}: {failure}", code=code) from failure
        return [each for each in entries if isinstance(each, Mapping)]

    def _gone(self, connection: Connection) -> ToolGone | None:
        if connection.resources:
            return None
        return ToolGone(f"{self._asking.server_id} offers no resources any more", changed=False)


def _entry(listed: Mapping[str, Any]) -> JsonObject:
    shown: JsonObject = {}
    for key, name in (("uri", "uri"), ("name", "name"), ("mimeType", "media_type")):
        said = listed.get(key)
        if isinstance(said, str):
            shown[name] = said[:MAX_URI]
    return shown
