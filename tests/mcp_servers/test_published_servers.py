"""Sessions with servers as they are published: what they list is carried, what they do is answered, and nothing of them is left."""

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest

from agentic.services.mcp.catalog import spec_of
from agentic.services.mcp.failures import RemoteFailure, Trouble
from agentic.services.mcp.prompts import prompts
from agentic.services.mcp.results import Answered, ToolFailed, read_result
from agentic.services.mcp.servers import RemoteServer
from agentic.services.tools.dynamic import admit
from tests.integration.mcp.scripted_http import Scripted
from tests.integration.mcp.stage import call, http_config, server_of
from tests.mcp_servers.launching import config_of
from tests.mcp_servers.servers import LOOPBACK, SERVERS, Foreign, search_path

pytestmark = [pytest.mark.usefixtures("nothing_left"), pytest.mark.timeout(180)]
BY_NAME = {each.name: each for each in SERVERS}


@pytest.mark.parametrize("foreign", SERVERS, ids=lambda each: each.name)
async def test_a_published_server_is_opened_listed_and_called_with_the_environment_that_is_built_for_it(
    foreign: Foreign, folder: Path, page: Scripted
) -> None:
    config = config_of(foreign, folder, page)
    async with server_of(config) as server:
        catalog = (await server.connection()).catalog
        again = [(await server.look()).catalog for _ in range(3)]
        answer = await answered(server, foreign, folder, page)
        await prompts(server)
        heard = (await server.connection()).session.heard
    assert len(catalog.tools) == foreign.tools and catalog.conflicts == ()
    assert {each.remote_name for each in catalog.rejected} == foreign.rejected.keys()
    assert all(foreign.rejected[each.remote_name] in each.reason for each in catalog.rejected)
    assert {each.catalog_hash for each in again} == {catalog.catalog_hash}
    specs = [spec_of(config, tool, connection_id=uuid4()) for tool in catalog.tools]
    let_in, report = admit(specs, "mcp", code=(), present=())
    assert len(let_in) == foreign.tools and report.rejected == {}
    assert foreign.says in answer and heard.refused == {}


async def test_a_published_server_that_shows_its_environment_shows_nothing_of_ours(
    folder: Path, page: Scripted, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgres://inside")
    async with server_of(config_of(BY_NAME["everything"], folder, page)) as server:
        seen = json.loads(await call(server, "get-env"))
    assert seen.keys() == {"PATH", "HOME", "TMPDIR", "LANG", "LC_ALL"}


async def test_every_kind_of_content_that_a_published_server_makes_is_read_and_its_bytes_are_kept_beside(
    folder: Path, page: Scripted
) -> None:
    kept: list[tuple[int, str]] = []

    def keep(body: bytes, media_type: str) -> UUID:
        kept.append((len(body), media_type))
        return uuid4()

    async with server_of(config_of(BY_NAME["everything"], folder, page)) as server:
        connection = await server.connection()

        async def read(name: str, **arguments: Any) -> tuple[list[str], dict[str, Any]]:
            raw = await connection.session.request("tools/call", {"name": name, "arguments": arguments}, timeout_s=30)
            tool = connection.catalog.tool(name)
            assert tool is not None
            found = read_result(raw, keep=keep, output_schema=tool.output_schema)
            assert isinstance(found, Answered)
            content = found.data["content"]
            assert isinstance(content, list)
            return [str(block["type"]) for block in content if isinstance(block, dict)], dict(found.data)

        assert (await read("get-tiny-image"))[0] == ["text", "image", "text"]
        assert (await read("get-resource-links", count=2))[0] == ["text", "resource_link", "resource_link"]
        assert (await read("get-resource-reference", resourceType="Blob", resourceId=1))[0][1] == "resource"
        weather = (await read("get-structured-content", location="Chicago"))[1]
    assert "conditions" in str(weather["structured"]) and "structured_invalid" not in weather
    assert [media_type for _, media_type in kept] == ["image/png", "text/plain"] and all(size for size, _ in kept)


async def test_a_call_that_is_given_up_on_leaves_a_published_server_to_the_others(folder: Path, page: Scripted) -> None:
    async with server_of(config_of(BY_NAME["everything"], folder, page)) as server:
        long = {"duration": 3, "steps": 3}
        other = asyncio.ensure_future(call(server, "trigger-long-running-operation", **long))
        with pytest.raises(RemoteFailure) as failure:
            await call(server, "trigger-long-running-operation", timeout_s=0.5, **long | {"duration": 600})
        assert failure.value.trouble is Trouble.TIMEOUT
        assert await call(server, "get-sum", a=1, b=1) == "The sum of 1 and 1 is 2."
        assert "completed" in await other


@pytest.mark.parametrize(
    ("name", "trouble"), [("everything", Trouble.SESSION_SUSPECT), ("motherduck", Trouble.SESSION_EXPIRED)]
)
async def test_a_published_server_over_http_is_called_and_one_that_was_started_anew_says_that_it_forgot_the_session(
    name: str, trouble: Trouble
) -> None:
    foreign = BY_NAME[name]
    tool, arguments = foreign.call
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    async with server_of(http_config(f"http://127.0.0.1:{port}/mcp")) as server:
        async with listening(foreign, port):
            connection = await server.connection()
            assert len(connection.catalog.tools) == foreign.tools
            assert foreign.says in await call(server, tool, **arguments)
        async with listening(foreign, port):
            with pytest.raises(RemoteFailure) as failure:
                await call(server, tool, **arguments)
            assert failure.value.trouble is trouble
            server.drop(connection, failure.value.trouble)
            assert foreign.says in await call(server, tool, **arguments)


async def answered(server: RemoteServer, foreign: Foreign, folder: Path, page: Scripted) -> str:
    """What a server says to its one call, which is an answer or a failure as it should be."""
    tool, arguments = foreign.call
    placed = json.loads(json.dumps(arguments).replace("{folder}", str(folder)).replace("{page}", page.url))
    session = (await server.connection()).session
    result: object
    try:
        raw = await session.request("tools/call", {"name": tool, "arguments": placed}, timeout_s=60)
        result = read_result(raw, keep=lambda body, media_type: uuid4())
    except RemoteFailure as failure:
        result = failure
    match result:
        case Answered(data=data) if not foreign.fails:
            return json.dumps(data, ensure_ascii=False)
        case ToolFailed(words=words) if foreign.fails:
            return words
        case RemoteFailure(trouble=Trouble.SERVER_ERROR, external_text=str(words)) if foreign.fails:
            return words
    pytest.fail(f"{foreign.name} answered {result!r}")


@asynccontextmanager
async def listening(foreign: Foreign, port: int) -> AsyncIterator[None]:
    """A server over HTTP, as long as the block lasts."""
    how = {
        "everything": ("node", "--require", str(LOOPBACK), str(foreign.executable), "streamableHttp"),
        "motherduck": (
            str(foreign.executable),
            *foreign.arguments,
            "--transport",
            "http",
            "--host",
            "127.0.0.1",
            "--port",
            str(port),
        ),
    }[foreign.name]
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        *how, env={"PATH": search_path(), "PORT": str(port)}, stdin=pipe, stdout=pipe, stderr=pipe
    )
    chatter = asyncio.ensure_future(process.communicate())
    try:
        async with asyncio.timeout(60):
            while not await _answers(port):
                assert process.returncode is None, await chatter
                await asyncio.sleep(0.05)
        yield
    finally:
        if process.returncode is None:
            process.kill()
        await chatter


async def _answers(port: int) -> bool:
    try:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
    except OSError:
        return False
    writer.close()
    await writer.wait_closed()
    return True
