"""Every route, seen by somebody of another organization and by nobody in particular."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID, uuid4

import httpx
import pytest

from agentic.api.webhooks import ACCOUNTS_PATH as ACCOUNT_EVENTS
from agentic.api.webhooks import PATH as WEBHOOKS
from agentic.contract.principal import Role

if TYPE_CHECKING:
    from tests.integration.api.conftest import Stage

LISTS = ["/v1/runs", "/v1/approvals", "/v1/uncertain", "/v1/mcp/servers"]
EVIDENCE = {"evidence": "seen it myself"}
SHOWN = {"offered_hash": f"c1:{64 * '0'}"}
BODIES: Final = {
    ("PATCH", "/v1/mcp/servers/{server_id}"): {"classification": None},
    ("POST", "/v1/mcp/servers/{server_id}/activate"): SHOWN,
    ("POST", "/v1/mcp/servers/{server_id}/approve"): SHOWN,
}
"""What a route must be told, where that is no evidence."""
OPEN: Final = {("GET", "/healthz"), ("POST", WEBHOOKS), ("POST", ACCOUNT_EVENTS), ("GET", ACCOUNT_EVENTS)}
"""Routes without a token: one tells nothing, the others believe signatures alone, or say a provider's own word back to it."""
MAKES: Final = {("POST", "/v1/runs"), ("POST", "/v1/mcp/servers")}


@dataclass(frozen=True, kw_only=True)
class Route:
    """One route of the application, whichever file it is in."""

    method: str
    path: str
    body: bool
    queries: tuple[str, ...]
    """Parameters that have to be in its query."""

    @property
    def key(self) -> tuple[str, str]:
        return self.method, self.path

    async def ask(self, http: httpx.AsyncClient, ids: Mapping[str, str]) -> httpx.Response:
        """Ask with these ids in the path; an id of a new name is to be made in ``_things`` below."""
        told = BODIES.get(self.key, EVIDENCE) if self.body else None
        asked = dict.fromkeys(self.queries, "find")
        return await http.request(self.method, self.path.format(**ids), json=told, params=asked)


def _routes(stage: "Stage") -> list[Route]:
    return [
        Route(
            method=method.upper(),
            path=path,
            body=told.get("requestBody", {}).get("required", False),
            queries=tuple(
                each["name"] for each in told.get("parameters", []) if each["in"] == "query" and each["required"]
            ),
        )
        for path, methods in stage.api.openapi()["paths"].items()
        for method, told in methods.items()
    ]


async def _things(stage: "Stage", user: UUID) -> dict[str, str]:
    """One of everything that a route can name."""
    _, ref = await stage.uncertain(user)
    run, approval = await stage.waiting(user)
    return {
        "run_id": run,
        "approval_id": approval,
        "ref": ref,
        "artifact_id": await stage.artifact(run),
        "server_id": await stage.server(),
    }


def _missing() -> dict[str, str]:
    made = {name: str(uuid4()) for name in ("run_id", "approval_id", "artifact_id")}
    return {**made, "ref": uuid4().hex[:16], "server_id": f"s{uuid4().hex[:12]}"}


async def _answers(stage: "Stage", http: httpx.AsyncClient, ids: Mapping[str, str]) -> dict[tuple[str, str], Any]:
    """Status and body of every route that takes an id, the ids in it replaced by one mark."""
    found = {}
    for route in _routes(stage):
        if "{" not in route.path or route.key in OPEN:
            continue
        answer = await route.ask(http, ids)
        text = answer.text
        for identifier in ids.values():
            text = text.replace(identifier, "ID")
        found[route.key] = (answer.status_code, text)
    return found


@pytest.mark.guarantee("T1")
async def test_what_belongs_to_others_looks_like_what_is_not_there(stage: "Stage") -> None:
    """Every route that takes an id; those of a new file are found by themselves."""
    user = await stage.person(Role.APPROVER)
    things = await _things(stage, user)
    elsewhere = uuid4()
    stranger = await stage.person(Role.ADMIN, elsewhere)
    async with stage.as_(stranger, elsewhere) as http:
        foreign = await _answers(stage, http, things)
        missing = await _answers(stage, http, _missing())
    assert len(foreign) > 10
    assert foreign == missing
    assert {status for status, _ in foreign.values()} == {404}

    async with stage.as_(user) as http:
        assert (await http.get(f"/v1/approvals/{things['approval_id']}")).json()["status"] == "pending"
        assert len((await http.get("/v1/uncertain")).json()["uncertain"]) == 1
        assert (await http.post(f"/v1/runs/{things['run_id']}/cancel")).json()["cancelling"] is True
        server = (await http.get(f"/v1/mcp/servers/{things['server_id']}")).json()
        assert (server["state"], [tool["state"] for tool in server["tools"]]) == ("active", ["approved"])


@pytest.mark.guarantee("T1")
async def test_every_list_is_empty_for_others_whatever_it_is_asked_for(stage: "Stage") -> None:
    user = await stage.person(Role.APPROVER)
    run = (await _things(stage, user))["run_id"]
    lists = {route.path for route in _routes(stage) if "{" not in route.path and route.key not in OPEN | MAKES}
    assert lists == set(LISTS)
    elsewhere = uuid4()
    async with stage.as_(user) as ours, stage.as_(await stage.person(Role.ADMIN, elsewhere), elsewhere) as theirs:
        for path in lists:
            for asked in ({}, {"run_id": run}, {"root": run}, {"agent": "scribe"}, {"status": "pending"}):
                assert list((await ours.get(path, params=asked)).json().values()) != [[]], (path, asked)
                assert list((await theirs.get(path, params=asked)).json().values()) == [[]], (path, asked)


@pytest.mark.guarantee("T1")
async def test_a_request_key_of_another_organization_is_free(stage: "Stage") -> None:
    ask = {"agent": "scribe", "input": "write to Per", "request_key": "same"}
    elsewhere = uuid4()
    async with stage.as_(await stage.person(Role.MEMBER)) as http:
        ours = await http.post("/v1/runs", json=ask)
    async with stage.as_(await stage.person(Role.MEMBER, elsewhere), elsewhere) as http:
        theirs = await http.post("/v1/runs", json=ask)
    assert (ours.status_code, theirs.status_code) == (201, 201)
    assert ours.json()["run_id"] != theirs.json()["run_id"]


@pytest.mark.guarantee("A5")
async def test_without_a_token_no_route_answers_but_those_that_take_none(stage: "Stage") -> None:
    things = await _things(stage, await stage.person(Role.APPROVER))
    user = await stage.person(Role.ADMIN)
    token = stage.token(user)
    ways: list[dict[str, Any]] = [
        {},
        {"params": {"token": token, "access_token": token}},
        {"cookies": {"authorization": f"Bearer {token}"}},
        {"headers": {"Authorization": token}},
        {"headers": [("Authorization", f"Bearer {token}"), ("Authorization", f"Bearer {token}")]},
        {"headers": {"Authorization": f"Bearer {stage.token(user, exp=1)}"}},
    ]
    for way in ways:
        async with stage.client(**way) as http:
            for route in _routes(stage):
                if route.key not in OPEN:
                    answer = await route.ask(http, things)
                    assert (answer.status_code, answer.headers["www-authenticate"]) == (401, "Bearer"), (route, way)
            assert (await http.get("/healthz")).status_code == 200
    async with stage.as_(await stage.person(Role.MEMBER)) as http:
        assert (await http.get(f"/v1/approvals/{things['approval_id']}")).json()["status"] == "pending"


async def test_a_token_of_somebody_who_is_no_member_opens_nothing(stage: "Stage") -> None:
    async with stage.as_(await stage.person(None)) as http:
        for path in LISTS:
            assert (await http.get(path)).status_code == 403
        ask = {"agent": "scribe", "input": "write to Per", "request_key": "k"}
        assert (await http.post("/v1/runs", json=ask)).status_code == 403


async def test_a_database_that_went_away_is_503_with_a_time_to_come_back(stage: "Stage") -> None:
    user = await stage.person(Role.MEMBER)
    await stage.platform.database.pool.close()
    async with stage.as_(user) as http:
        answer = await http.get("/v1/runs")
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "2")
        assert answer.json()["error"]["code"] == "retry_later"
        assert (await http.get("/healthz")).status_code == 503
