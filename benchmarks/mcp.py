"""``python -m benchmarks.mcp``: what a remote server costs, a session beside the bare SDK's, a governed call beside one of our code."""

import argparse
import asyncio
import gc
import json
import statistics
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, Literal

import psutil
from mcp.client.session import ClientSession
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from rich.console import Console, Group
from rich.table import Table

from agentic.contract.errors import NotFound, ProgramFault
from agentic.services.mcp.authentication import Credential
from agentic.services.mcp.config import HttpEndpoint, Owner, ServerConfig, StdioLaunch, Timeouts
from agentic.services.mcp.library_logs import quiet_libraries
from agentic.services.mcp.servers import RemoteServer
from agentic.services.mcp.slots import Slots
from benchmarks.mcp_calls import governed

PROGRAM: Final = Path(__file__).with_name("mcp_server.py")
_BATCH: Final = 20
_WARM: Final = 2
Transport = Literal["stdio", "http"]
Call = Callable[[str], Awaitable[object]]
"""One call of the tool that finds a note."""
Open = Callable[[AsyncExitStack], Awaitable[Call]]
"""Opens a session, reads its list, and gives what makes a call over it; the stack closes it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Figures:
    """One way to talk to the server. Descriptors and processes are exact; times and memory belong to this machine.

    Attributes:
        client: ``sdk``, as its documentation opens a session and calls, or ``agentic``.
        open_ms: from nothing to a session whose list was read, the median.
        call_ms: one call, the median.
        rss_kb: memory of this process for each idle session, of many.
        descriptors: of this process for each idle session.
        processes: started for each session.
    """

    transport: Transport
    client: str
    open_ms: float
    call_ms: float
    rss_kb: float
    descriptors: float
    processes: float


def main(arguments: Sequence[str] | None = None) -> None:
    """Measures and prints; see ``README.md`` beside this file."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.mcp", description=__doc__)
    parser.add_argument("--json", action="store_true", help="print one JSON value in place of the table")
    parser.add_argument("--calls", type=_count, default=1000, help="calls of each client (default: 1000)")
    parser.add_argument("--sessions", type=_count, default=30, help="sessions opened, and held idle (default: 30)")
    parser.add_argument("--seconds", type=float, default=1.0, help="how long governed calls are made (default: 1)")
    given = parser.parse_args(arguments)
    found = asyncio.run(run(calls=given.calls, sessions=given.sessions, seconds=given.seconds))
    if given.json:
        print(json.dumps(found, indent=2))
    else:
        Console(width=120).print(as_tables(found))


async def run(*, calls: int, sessions: int, seconds: float) -> dict[str, Any]:
    """Both transports with both clients, and the governed calls over HTTP."""
    quiet_libraries()
    rows: list[dict[str, Any]] = []
    async with _listening() as url:
        for transport, clients in _clients(url).items():
            figures = await _measured(transport, clients, calls=calls, sessions=sessions)
            rows += [_row(each, figures[0]) for each in figures]
        return {"calls": calls, "sessions": sessions, "rows": rows, "governed": await governed(url, seconds=seconds)}


def as_tables(found: dict[str, Any]) -> Group:
    """The same for people."""
    sessions = Table(title="A session with a remote server")
    for name in ("transport", "client"):
        sessions.add_column(name, no_wrap=True)
    for name in ("open ms", "of SDK", "call ms", "of SDK", "kB idle", "descriptors", "processes"):
        sessions.add_column(name, justify="right")
    for row in found["rows"]:
        times = (
            f"{row['open_ms']:.1f}",
            f"{row['open_of_sdk']:.2f}",
            f"{row['call_ms']:.2f}",
            f"{row['call_of_sdk']:.2f}",
        )
        counts = (f"{row['rss_kb']:.0f}", f"{row['descriptors']:g}", f"{row['processes']:g}")
        sessions.add_row(row["transport"], row["client"], *times, *counts)
    calls = Table(title="A governed call of it, over HTTP")
    calls.add_column("call", no_wrap=True)
    for name in ("statements", "commits", "of code tool"):
        calls.add_column(name, justify="right")
    for row in found["governed"]:
        calls.add_row(
            row["workload"], f"{row['statements']:.2f}", f"{row['commits']:.2f}", f"{row['of_code_tool']:.2f}"
        )
    return Group(sessions, calls)


def _clients(url: str) -> dict[Transport, dict[str, Open]]:
    launch = StdioLaunch(command=(sys.executable, "-I", "-S", str(PROGRAM)))
    return {
        "stdio": {"sdk": _sdk_over_stdio, "agentic": _agentic(launch)},
        "http": {"sdk": _sdk_over_http(url), "agentic": _agentic(HttpEndpoint(url=url))},
    }


async def _measured(transport: Transport, clients: dict[str, Open], *, calls: int, sessions: int) -> list[Figures]:
    """Both clients in turns, so that whatever else the machine does falls on both."""
    opened: dict[str, list[float]] = {client: [] for client in clients}
    called: dict[str, list[float]] = {client: [] for client in clients}
    for _ in range(_WARM + sessions):
        for client, opens in clients.items():
            async with AsyncExitStack() as stack:
                opened[client].append((await _timed(opens(stack)))[0])
    async with AsyncExitStack() as stack:
        ready = {client: await opens(stack) for client, opens in clients.items()}
        for number in range(-(-calls // _BATCH)):
            for client, call in ready.items():
                called[client] += [(await _timed(call(f"note {number}.{each}")))[0] for each in range(_BATCH)]
    return [
        Figures(
            transport=transport,
            client=client,
            open_ms=statistics.median(opened[client][_WARM:]) * 1000,
            call_ms=statistics.median(called[client]) * 1000,
            **await _held(opens, sessions),
        )
        for client, opens in clients.items()
    ]


async def _timed(act: Awaitable[Any]) -> tuple[float, Any]:
    began = time.perf_counter()
    result = await act
    return time.perf_counter() - began, result


async def _held(opens: Open, sessions: int) -> dict[str, float]:
    """What idle sessions hold, each."""
    me = psutil.Process()
    async with AsyncExitStack() as stack:
        await opens(stack)  # what is shared by all of them is there after the first
        gc.collect()
        before = (me.memory_info().rss, me.num_fds(), len(me.children(recursive=True)))
        for _ in range(sessions):
            await opens(stack)
        gc.collect()
        after = (me.memory_info().rss, me.num_fds(), len(me.children(recursive=True)))
    rss, descriptors, processes = ((late - early) / sessions for early, late in zip(before, after, strict=True))
    return {"rss_kb": rss / 1024, "descriptors": descriptors, "processes": processes}


async def _sdk_over_stdio(stack: AsyncExitStack) -> Call:
    parameters = StdioServerParameters(command=sys.executable, args=["-I", "-S", str(PROGRAM)])
    return await _sdk(stack, *await stack.enter_async_context(stdio_client(parameters)))


def _sdk_over_http(url: str) -> Open:
    async def opens(stack: AsyncExitStack) -> Call:
        return await _sdk(stack, *await stack.enter_async_context(streamable_http_client(url)))

    return opens


async def _sdk(stack: AsyncExitStack, read: Any, write: Any) -> Call:
    session = await stack.enter_async_context(ClientSession(read, write))
    await session.initialize()
    await session.list_tools()

    async def call(text: str) -> object:
        return await session.call_tool("find", {"text": text})

    return call


def _agentic(endpoint: StdioLaunch | HttpEndpoint) -> Open:
    async def opens(stack: AsyncExitStack) -> Call:
        config = ServerConfig(
            server_id="bench", owner=Owner.OPERATOR, endpoint=endpoint, timeouts=Timeouts(connect_s=60)
        )
        server = RemoteServer(config, vault=_NoVault(), permits=lambda origin: True, slots=Slots())
        stack.push_async_callback(server.aclose)
        session = (await server.connection()).session

        async def call(text: str) -> object:
            return await session.request("tools/call", {"name": "find", "arguments": {"text": text}})

        return call

    return opens


class _NoVault:
    """The measured server takes no credential."""

    async def resolve(self, reference: str) -> Credential:
        raise NotFound(f"no credential {reference}")


@asynccontextmanager
async def _listening() -> AsyncIterator[str]:
    """The server over HTTP; its address."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-I", str(PROGRAM), "http", stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    try:
        async with asyncio.timeout(60):
            url = (await process.stdout.readline()).decode().strip()
        if not url:
            raise ProgramFault("the measured server ended before it served; what it said stands above")
        yield url
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


def _row(row: Figures, sdk: Figures) -> dict[str, Any]:
    told = {name: round(value, 4) if isinstance(value, float) else value for name, value in asdict(row).items()}
    return {
        **told,
        "open_of_sdk": round(row.open_ms / sdk.open_ms, 3),
        "call_of_sdk": round(row.call_ms / sdk.call_ms, 3),
    }


def _count(text: str) -> int:
    value = int(text)
    if not 1 <= value <= 100_000:
        raise argparse.ArgumentTypeError("give a number from 1 to 100,000")
    return value


if __name__ == "__main__":
    main()
