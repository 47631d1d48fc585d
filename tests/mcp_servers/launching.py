"""From a published server to its configuration here."""

from pathlib import Path

from agentic.services.mcp.config import Owner, ServerConfig, StdioLaunch, Timeouts
from tests.integration.mcp.scripted_http import Scripted
from tests.mcp_servers.servers import Foreign, search_path


def config_of(foreign: Foreign, folder: Path, page: Scripted) -> ServerConfig:
    """What an operator would write, with the placeholders filled in."""

    def placed(text: str) -> str:
        return text.replace("{folder}", str(folder)).replace("{page}", page.url)

    return ServerConfig(
        server_id=foreign.name,
        owner=Owner.OPERATOR,
        endpoint=StdioLaunch(
            command=(str(foreign.executable), *map(placed, foreign.arguments)),
            path=search_path(),
            variables={name: placed(value) for name, value in foreign.variables.items()},
        ),
        timeouts=Timeouts(connect_s=60),
    )
