"""A person at the API: the requests that anybody with a token would send, over HTTP."""

from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Self
from uuid import UUID

import httpx

from agentic.contract.errors import AgenticError
from agentic.local.tokens import sign

TIMEOUT_S = 30.0


class ApiRefused(AgenticError):
    """The API said no; the message is what it said."""


class Person:
    """``async with Person(...) as person``: one person's session with the API.

    Args:
        url: origin of the API.
        secret: what the local API's tokens are signed with.
        organization_id: the organization the person acts in.
        user_id: who they are.
    """

    def __init__(self, *, url: str, secret: str, organization_id: UUID, user_id: UUID) -> None:
        token = sign(secret, organization_id=organization_id, user_id=user_id)
        self._http = httpx.AsyncClient(
            base_url=url, headers={"authorization": f"Bearer {token}"}, timeout=TIMEOUT_S, trust_env=False
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._http.aclose()

    async def start(self, agent: str, text: str, *, request_key: str) -> UUID:
        """Start a run."""
        body = {"agent": agent, "input": text, "request_key": request_key}
        return UUID((await self._send("POST", "/v1/runs", body))["run_id"])

    async def run(self, run_id: UUID) -> dict[str, Any]:
        """A run with everything it can say about itself."""
        return await self._send("GET", f"/v1/runs/{run_id}")

    async def cancel(self, run_id: UUID) -> None:
        """Ask that a run ends."""
        await self._send("POST", f"/v1/runs/{run_id}/cancel")

    async def waiting(self, run_id: UUID) -> Sequence[Mapping[str, Any]]:
        """The approvals a run waits for, oldest first."""
        found: list[Mapping[str, Any]] = (await self._send("GET", f"/v1/approvals?run_id={run_id}&status=pending"))[
            "approvals"
        ]
        return sorted(found, key=lambda approval: str(approval["created_at"]))

    async def decide(self, approval_id: str, *, approve: bool, comment: str | None = None) -> None:
        """Approve or reject."""
        verdict = "approve" if approve else "reject"
        await self._send("POST", f"/v1/approvals/{approval_id}/{verdict}", {"comment": comment})

    async def _send(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> dict[str, Any]:
        response = await self._http.request(method, path, json=body)
        content: dict[str, Any] = response.json()
        if response.is_error:
            raise ApiRefused(
                f"the API answered {response.status_code} to {method} {path}: {content['error']['message']}"
            )
        return content
