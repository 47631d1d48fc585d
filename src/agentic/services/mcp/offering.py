"""What of a server is offered to an organization's runs, in one batch, and the code behind each offer."""

from collections.abc import Callable
from uuid import UUID

from agentic.services.mcp.asking import RunMarks
from agentic.services.mcp.calling import RemoteToolHandler
from agentic.services.mcp.catalog import Catalog, spec_of
from agentic.services.mcp.config import ServerConfig
from agentic.services.mcp.resources import READ_RESOURCE, ResourceHandler, resource_spec
from agentic.services.mcp.servers import RemoteServer
from agentic.services.tools.models import ToolSpec
from agentic.services.tools.ports import ToolHandler


def offered(config: ServerConfig, catalog: Catalog, *, connection_id: UUID, resources: bool = False) -> list[ToolSpec]:
    """The specs to register, all of a server at once: a tool of it that takes the name of our reader costs both (N1).

    Args:
        catalog: as an operator approved it. What it keeps for applications is left out.
        connection_id: the connection whose credential the server gets.
        resources: whether the server offers resources.
    """
    tools = [spec_of(config, tool, connection_id=connection_id) for tool in catalog.tools if not tool.application_only]
    return [*tools, resource_spec(config, connection_id=connection_id)] if resources else tools


def handler_of(server: RemoteServer, catalog: Catalog, *, marks: RunMarks) -> Callable[[ToolSpec], ToolHandler]:
    """What makes the code behind each of them, for the registry."""
    schemas = {tool.remote_name: tool.output_schema for tool in catalog.tools}
    reader = f"mcp.{server.config.server_id}.{READ_RESOURCE}"

    def make(spec: ToolSpec) -> ToolHandler:
        if spec.name == reader:
            return ResourceHandler(server, marks=marks)
        return RemoteToolHandler(server, spec, marks=marks, schemas=schemas)

    return make
