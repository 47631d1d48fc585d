"""One call to an app: the request as the protocol wants it, sent, and its answer read."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import httpx

from agentic.contract.clock import Clock
from agentic.local.engine.answers import Answer, Unreached, broken, read_answer
from agentic.local.engine.ids import name_uuid, new_ulid
from agentic.local.engine.runs import TOP

CONNECT_TIMEOUT_S = 5.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Call:
    """A leased job with everything its request carries."""

    job_id: int
    leased_at: datetime
    begun: bool
    run_id: str
    function_id: str
    url: str
    step: str
    attempt: int
    max_attempts: int
    events: tuple[Mapping[str, Any], ...]
    stack: tuple[str, ...]
    memos: Mapping[str, Any]
    version: int
    has_company: bool
    unreachable_since: datetime | None
    unreachable_count: int


def request_body(call: Call, *, request_id: str) -> dict[str, Any]:
    """The body of a call, field for field as the recorded server sends it."""
    return {
        "ctx": {
            "attempt": call.attempt,
            # A step that turns up beside others still open must be planned, not run on the spot, or it would run twice.
            "disable_immediate_execution": call.step != TOP or call.has_company,
            "env": "",
            "fn_id": name_uuid(call.function_id),
            "generation_id": call.attempt + 1,
            "job_id": str(call.job_id),
            "max_attempts": call.max_attempts,
            "qi_id": base64.b64encode(f"{call.job_id}::default".encode()).decode(),
            "request_id": request_id,
            "run_id": call.run_id,
            "stack": {"current": len(call.stack), "stack": list(call.stack)},
            "step_id": TOP,
            "use_api": False,
        },
        "defers": {},
        "event": call.events[0],
        "events": list(call.events),
        "steps": call.memos,
        "use_api": False,
        "version": call.version,
    }


class Caller:
    """Sends calls over loopback, a fresh connection each: a kept one to an app that died would fail in mid-call."""

    def __init__(self, *, clock: Clock, call_timeout_s: float) -> None:
        self._clock = clock
        self._http = httpx.AsyncClient(
            timeout=httpx.Timeout(call_timeout_s, connect=CONNECT_TIMEOUT_S),
            limits=httpx.Limits(max_keepalive_connections=0),
            trust_env=False,
        )

    async def send(self, call: Call) -> Answer:
        """Make the call; every way the app or the connection can end it is an answer, none is an exception."""
        try:
            response = await self._http.post(
                call.url,
                params={"fnId": call.function_id, "stepId": call.step},
                json=request_body(call, request_id=new_ulid(self._clock.now())),
                headers={
                    "x-inngest-req-version": str(call.version),
                    "x-inngest-step-id": call.step,
                    "x-run-id": call.run_id,
                },
            )
        except (httpx.ConnectError, httpx.ConnectTimeout) as refused:
            return Unreached(reason=str(refused) or type(refused).__name__)
        except httpx.HTTPError as died:
            return broken(f"the connection to the app ended before its answer ({type(died).__name__}: {died})")
        return read_answer(
            status=response.status_code,
            headers={name.lower(): value for name, value in response.headers.items()},
            content=response.content,
            now=self._clock.now(),
        )

    async def close(self) -> None:
        """Close what is open."""
        await self._http.aclose()
