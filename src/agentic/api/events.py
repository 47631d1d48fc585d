"""The route of a run's events: a list, or a stream of Server-Sent Events that goes on where its reader left off (ADR 0031).

A stream reads rows now and then and holds no connection of the database in between. It ends after a while even of a run that goes on:
the reader comes back with the number it saw last, and who it is is asked anew.
"""

import json
import logging
import time
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Depends, Header, Query, Request
from fastapi.responses import JSONResponse, Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from agentic.api.access import Access
from agentic.api.auth import Caller
from agentic.api.errors import error_response
from agentic.api.ports import ApiPorts
from agentic.api.views import event_view
from agentic.contract.errors import NotFound, RetryLater
from agentic.services.runs.events import RunEvent, RunEvents
from agentic.services.runs.following import Pace, follow

_log = logging.getLogger(__name__)
EVENT_STREAM = "text/event-stream"
MAX_SEQ = 2**63 - 1
RETRY_MS = 2000
_HEADERS = {"cache-control": "no-store", "x-accel-buffering": "no"}
"""A proxy that gathers a stream would show nothing of it until its end."""


@dataclass(frozen=True, kw_only=True, slots=True)
class StreamLimits:
    """What streams may take of one process."""

    per_person: int = 6
    in_all: int = 1000
    heartbeat_s: float = 15.0
    """A comment is sent when nothing else was for this long: proxies close silent connections, and a reader who left shows."""
    longest_s: float = 300.0
    """A stream ends after this time; its reader comes back with a token that still counts."""
    pace: Pace = field(default_factory=Pace)


class OpenStreams:
    """Counts the streams of each person in this process."""

    def __init__(self, limits: StreamLimits) -> None:
        self.limits = limits
        self._open: Counter[Caller] = Counter()

    @property
    def count(self) -> int:
        """How many are open."""
        return self._open.total()

    def take(self, caller: Caller) -> bool:
        """Take a place for a stream, if there is one."""
        if self._open[caller] >= self.limits.per_person or self.count >= self.limits.in_all:
            return False
        self._open[caller] += 1
        return True

    def leave(self, caller: Caller) -> None:
        """Give the place back."""
        self._open[caller] -= 1
        if not self._open[caller]:
            del self._open[caller]


def event_routes(ports: ApiPorts, access: Access, limits: StreamLimits | None = None) -> APIRouter:
    """Build the route."""
    router = APIRouter(prefix="/v1/runs")
    streams = OpenStreams(limits or StreamLimits())

    @router.get("/{run_id}/events", response_model=None)
    async def events(
        request: Request,
        caller: Annotated[Caller, Depends(access)],
        run_id: UUID,
        after: Annotated[int, Query(ge=0, le=MAX_SEQ)] = 0,
        limit: Annotated[int, Query(ge=1, le=1000)] = 500,
        last_event_id: Annotated[int | None, Header(ge=0, le=MAX_SEQ)] = None,
    ) -> Response:
        seen = (
            after if last_event_id is None else last_event_id
        )  # a reader that reconnects still asks with its first address
        if _wants_list(request):
            page = await ports.events.events(caller.organization_id, run_id, after=seen, limit=limit)
            return JSONResponse(_list_view(page, seen))
        if not streams.take(caller):
            return error_response(
                429,
                "too_many_streams",
                "too many streams are open; close one, or ask for the list with 'Accept: application/json'",
                {"Retry-After": "5"},
            )
        looks = follow(ports.events, caller.organization_id, run_id, after=seen, pace=streams.limits.pace)
        try:
            first = await anext(looks)  # a run that is not there is a 404, not a stream
        except BaseException:
            streams.leave(caller)
            raise
        return _Stream(_frames(first, looks, streams.limits), streams, caller)

    return router


class _Stream(StreamingResponse):
    """Gives its place back however it ends, also when the reader goes away."""

    def __init__(self, frames: AsyncIterator[str], streams: OpenStreams, caller: Caller) -> None:
        super().__init__(frames, media_type=EVENT_STREAM, headers=_HEADERS)
        self._streams = streams
        self._caller = caller

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._streams.leave(self._caller)


async def _frames(first: RunEvents, looks: AsyncIterator[RunEvents], limits: StreamLimits) -> AsyncIterator[str]:
    began = spoke = time.monotonic()
    yield f"retry: {RETRY_MS}\n\n"
    page: RunEvents | None = first
    try:
        while page is not None:
            now = time.monotonic()
            if page.events:
                yield "".join(map(_frame, page.events))
                spoke = now
            elif now - spoke >= limits.heartbeat_s:
                yield ": still here\n\n"
                spoke = now
            if page.over:
                yield f"event: end\ndata: {json.dumps({'state': page.state})}\n\n"
                return
            if now - began >= limits.longest_s:
                return
            page = await anext(looks, None)
    except (RetryLater, NotFound) as error:  # the reader comes back, and hears then what is the matter
        _log.warning("a stream of events ended early (%s)", type(error).__name__)


def _frame(event: RunEvent) -> str:
    return f"id: {event.seq}\nevent: {event.kind}\ndata: {json.dumps(event_view(event))}\n\n"


def _list_view(page: RunEvents, seen: int) -> dict[str, object]:
    return {
        "events": [event_view(event) for event in page.events],
        "state": page.state,
        "next": page.events[-1].seq if page.events else seen,
        "over": page.over,
    }


def _wants_list(request: Request) -> bool:
    accepted = ",".join(request.headers.getlist("accept")).lower()
    return "application/json" in accepted and EVENT_STREAM not in accepted
