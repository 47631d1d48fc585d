"""The same sessions with servers that the SDK of the protocol makes, which nobody here wrote."""

import asyncio
import contextlib
import socket
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from uuid import uuid4

import pytest

from agentic.services.mcp.config import ServerConfig, StdioLaunch
from agentic.services.mcp.failures import RemoteFailure, Trouble
from agentic.services.mcp.results import Answered, ToolFailed, read_result
from tests.integration.mcp.stage import http_config, server_of, stdio_config

PROGRAM = (sys.executable, str(Path(__file__).parent / "sdk_server.py"))


@contextlib.asynccontextmanager
async def over(transport: str) -> AsyncIterator[ServerConfig]:
    """A server's configuration, as long as it runs."""
    if transport == "stdio":
        yield stdio_config().model_copy(update={"endpoint": StdioLaunch(command=PROGRAM)})
        return
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = await asyncio.create_subprocess_exec(*PROGRAM, str(port), stderr=asyncio.subprocess.PIPE)
    try:
        assert process.stderr is not None
        while b"running on" not in await process.stderr.readline():
            assert not process.stderr.at_eof()
        yield http_config(f"http://127.0.0.1:{port}/mcp")
    finally:
        process.kill()
        await process.communicate()


@pytest.mark.parametrize("transport", ["stdio", "http"])
async def test_a_server_of_the_sdk_is_opened_listed_called_and_closed(transport: str) -> None:
    async with over(transport) as config, server_of(config) as server:
        connection = await server.connection()
        catalog = connection.catalog
        assert [tool.name for tool in catalog.tools] == [f"mcp.scripted.{name}" for name in ("add", "fails", "picture")]
        session = connection.session

        async def call(name: str, **arguments: int) -> Answered | ToolFailed | object:
            raw = await session.request("tools/call", {"name": name, "arguments": arguments}, timeout_s=30)
            tool = catalog.tool(name)
            assert tool is not None
            return read_result(raw, keep=lambda body, media_type: uuid4(), output_schema=tool.output_schema)

        sums = await asyncio.gather(*(call("add", a=number, b=1) for number in range(20)))
        assert sums == [
            Answered(
                data={"content": [{"type": "text", "text": str(number + 1)}], "structured": {"result": number + 1}}
            )
            for number in range(20)
        ]
        assert isinstance(await call("fails"), ToolFailed)
        picture = await call("picture")
        assert isinstance(picture, Answered) and "artifact_id" in str(picture.data)
        with pytest.raises(RemoteFailure) as failure:
            await session.request("vendor/unknown", {}, timeout_s=30)
        assert failure.value.trouble is Trouble.SERVER_ERROR and failure.value.external_text
