"""A server under test, embedded or real, and one app on it whose functions note what they are given."""

from __future__ import annotations

import asyncio
import contextlib
import uuid
from collections.abc import Callable
from typing import Any

import httpx
import inngest
import inngest.fast_api
from fastapi import FastAPI

from agentic.local.engine.server import bind, serving

SETTLES_S = 30.0
"""How long a real server may take for what the embedded one does in milliseconds."""


class Server:
    """The server by its address alone: its public HTTP interface, and what functions on it observe.

    Attributes:
        notes: what the functions noted, in order.
        client: the SDK's client of the app under test.
    """

    def __init__(self, *, url: str, stack: contextlib.AsyncExitStack) -> None:
        self.url, self._stack = url, stack
        self.notes: list[Any] = []
        self.key = f"conform-{uuid.uuid4().hex[:8]}"  # in event names, so that tests on one server do not meet
        self.client = inngest.Inngest(app_id=self.key, is_production=False, api_base_url=url, event_api_base_url=url)
        # The SDK has no public way to close its connections, and a leaked socket is an error here.
        stack.push_async_callback(self.client._http_client._http_client.aclose)

    async def serve(self, *functions: inngest.Function[Any]) -> None:
        """Serve functions as an app on a free port and have it register."""
        app = FastAPI()
        inngest.fast_api.serve(app, self.client, list(functions))
        listener = bind("127.0.0.1", 0)
        await self._stack.enter_async_context(serving(app, listener))
        async with httpx.AsyncClient(trust_env=False) as http:
            answer = await http.put(f"http://127.0.0.1:{listener.getsockname()[1]}/api/inngest")
        assert answer.json().get("ok") is True, answer.text

    def name(self, event: str) -> str:
        """The whole name of an event of this test."""
        return f"{self.key}/{event}"

    def on(self, event: str, expression: str | None = None) -> inngest.TriggerEvent:
        """A trigger on an event of this test."""
        return inngest.TriggerEvent(event=self.name(event), expression=expression)

    async def send(self, event: str, data: dict[str, Any] | None = None, event_id: str = "") -> None:
        """Send an event of this test."""
        await self.client.send(inngest.Event(name=self.name(event), data=data or {}, id=event_id))

    async def note(self, what: Any) -> Any:
        """Note something; as the handler of a step, its value is what it noted."""
        self.notes.append(what)
        return what

    async def noted(self, *notes: Any) -> None:
        """Wait until exactly these notes are there, in any order."""
        await self.until(lambda: sorted(map(str, self.notes)) == sorted(map(str, notes)))

    async def until(self, holds: Callable[[], bool]) -> None:
        """Wait until a condition holds; where it does not come, say what was noted instead."""
        try:
            async with asyncio.timeout(SETTLES_S):
                while not holds():  # noqa: ASYNC110 - what functions note has no event
                    await asyncio.sleep(0.02)
        except TimeoutError as late:
            raise AssertionError(f"only this was noted: {self.notes}") from late
