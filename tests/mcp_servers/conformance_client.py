"""What the conformance tool starts as the client under test: `… URL`, with the scenario's name and context in the environment.

Prints what it saw as one line of JSON. It connects as a worker does, with the configuration that an operator would write for the scenario.
"""

import asyncio
import json
import os
import sys
from typing import Any
from urllib.parse import urlsplit

import httpx
from pydantic import SecretStr

from agentic.services.mcp.authentication import Credential
from agentic.services.mcp.catalog import Catalog
from agentic.services.mcp.config import Authentication, AuthScheme
from agentic.services.mcp.failures import RemoteFailure
from agentic.services.mcp.servers import RemoteServer
from agentic.services.mcp.slots import Slots
from tests.integration.mcp.stage import http_config

SCENARIO = os.environ["MCP_CONFORMANCE_SCENARIO"]
CONTEXT: dict[str, str] = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT", "{}"))


class Given:
    """The vault of the scenario."""

    async def resolve(self, reference: str) -> Credential:
        del reference
        return Credential(secret=SecretStr(CONTEXT["client_secret"]), client_id=CONTEXT["client_id"])


async def main(url: str) -> None:
    """Connect, list, call what the scenario wants called."""
    config = http_config(url, await authentication(url))
    server = RemoteServer(config, vault=Given(), permits=lambda origin: True, slots=Slots())
    saw: dict[str, Any] = {}
    try:
        connection = await server.connection()
        saw["tools"] = [tool.remote_name for tool in connection.catalog.tools]
        for name, arguments in calls(connection.catalog):
            raw = await connection.session.request("tools/call", {"name": name, "arguments": arguments}, timeout_s=20)
            saw[name] = raw.get("content")
    except RemoteFailure as failure:
        saw["trouble"] = str(failure.trouble)
    finally:
        await server.aclose()
    print(json.dumps(saw))


def calls(catalog: Catalog) -> list[tuple[str, dict[str, Any]]]:
    """The calls of the scenario."""
    if SCENARIO == "tools_call":
        return [("add_numbers", {"a": 5, "b": 3})]
    if SCENARIO == "sse-retry":
        return [("test_reconnection", {})]
    if SCENARIO == "json-schema-2020-12-preservation":
        focal = next(tool for tool in catalog.tools if tool.remote_name != "json_schema_echo")
        return [("json_schema_echo", {"schema": focal.input_schema})]
    if SCENARIO == "auth/client-credentials-basic":
        return [(tool.remote_name, {}) for tool in catalog.tools]
    return []


async def authentication(url: str) -> Authentication:
    """What an operator would configure, who has read where the server's tokens come from."""
    if SCENARIO != "auth/client-credentials-basic":
        return Authentication()
    place = urlsplit(url)
    async with httpx.AsyncClient(trust_env=False) as reader:
        about = f"{place.scheme}://{place.netloc}/.well-known/oauth-protected-resource{place.path}"
        (issuer,) = (await reader.get(about)).json()["authorization_servers"]
        endpoint = (await reader.get(f"{issuer}/.well-known/oauth-authorization-server")).json()["token_endpoint"]
    return Authentication(scheme=AuthScheme.OAUTH2_CLIENT, credential_ref="vault:client", token_endpoint=endpoint)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[-1]))
