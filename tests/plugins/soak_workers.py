"""Workers of the soak: forked from one process that has imported everything, each at the end of one connection.

A line in is a run to lead; lines out are the events that were sent and what became of each advance. A worker knows nothing else.
"""

import asyncio
import json
import os
import signal
import socket
from collections.abc import Sequence
from pathlib import Path
from uuid import UUID

import soak_app
from agentic.bootstrap import open_platform
from agentic.contract.events import Event
from agentic.runtime.agent.timings import Timings
from agentic.services.tools.default_invoker import InvokerSettings

TIMINGS = Timings(lease_s=3, renew_s=0.5, model_retry_s=0.1, fault_retry_s=0.1)
CLAIM_GRACE_S = 0.5
AT_ONCE = 6
"""Runs a worker leads at once."""


class _Wire:
    """Implements ``EventBus``; everything a worker says goes this way."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self._writer = writer

    def say(self, **line: object) -> None:
        """One line."""
        self._writer.write(json.dumps(line).encode() + b"\n")

    async def send(self, events: Sequence[Event]) -> None:
        """The events are on their way once they are on the wire."""
        for event in events:
            self.say(organization=str(event.organization_id), run=str(event.run_id))
        await self._writer.drain()


async def _work(url: str, connection: socket.socket) -> None:
    reader, writer = await asyncio.open_connection(sock=connection)
    wire, slots = _Wire(writer), asyncio.Semaphore(AT_ONCE)
    async with open_platform(
        soak_app.make(),
        url,
        bus=wire,
        timings=TIMINGS,
        invoker_settings=InvokerSettings(claim_grace_s=CLAIM_GRACE_S),
        max_connections=AT_ONCE + 2,
    ) as platform:

        async def lead(organization_id: UUID, run_id: UUID) -> None:
            async with slots:
                advanced = await platform.leader.advance(organization_id, run_id)
            due_at = None if advanced.due_at is None else advanced.due_at.timestamp()
            wire.say(organization=str(organization_id), run=str(run_id), state=advanced.state, due_at=due_at)

        wire.say(pid=os.getpid())
        async with asyncio.TaskGroup() as leading:
            while line := await reader.readline():
                order = json.loads(line)
                leading.create_task(lead(UUID(order["organization"]), UUID(order["run"])))


def serve(url: str, path: Path) -> int:
    """Start the process that forks a worker for each connection; its id."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(str(path))
    listener.listen(64)
    pid = os.fork()
    if pid:
        listener.close()
        return pid
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for them
    while True:
        connection, _ = listener.accept()
        if os.fork() == 0:
            listener.close()
            status = 1
            try:
                asyncio.run(_work(url, connection))
                status = 0
            finally:
                os._exit(status)
        connection.close()
