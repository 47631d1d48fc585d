"""Every route, seen by somebody of another organization and by nobody in particular."""

from typing import TYPE_CHECKING, Any
from uuid import uuid4

import httpx
import pytest

from agentic.contract.principal import Role

if TYPE_CHECKING:
    from tests.integration.api.conftest import Stage

LISTS = ["/v1/runs", "/v1/approvals", "/v1/uncertain"]
EVIDENCE = {"evidence": "seen it myself"}


def _requests(run: str, approval: str, ref: str) -> list[tuple[str, str, Any]]:
    return [
        ("GET", f"/v1/runs/{run}", None),
        ("GET", f"/v1/runs/{run}/audit", None),
        ("GET", f"/v1/runs/{run}/events", None),
        ("GET", f"/v1/runs/{run}/usage", None),
        ("POST", f"/v1/runs/{run}/cancel", None),
        ("GET", f"/v1/approvals/{approval}", None),
        ("POST", f"/v1/approvals/{approval}/approve", None),
        ("POST", f"/v1/approvals/{approval}/reject", None),
        ("GET", f"/v1/uncertain/{ref}", None),
        ("POST", f"/v1/uncertain/{ref}/confirm", EVIDENCE),
        ("POST", f"/v1/uncertain/{ref}/deny", EVIDENCE),
    ]


async def _answers(http: httpx.AsyncClient, run: str, approval: str, ref: str) -> list[tuple[int, str]]:
    """Status and body of every request, the ids in it replaced by one mark."""
    found = []
    for method, path, body in _requests(run, approval, ref):
        answer = await http.request(method, path, json=body)
        text = answer.text
        for identifier in (run, approval, ref):
            text = text.replace(identifier, "ID")
        found.append((answer.status_code, text))
    return found


@pytest.mark.guarantee("T1")
async def test_what_belongs_to_others_looks_like_what_is_not_there(stage: "Stage") -> None:
    user = await stage.person(Role.APPROVER)
    done, given = await stage.waiting(user)
    stage.tampers["post"] = ConnectionResetError("the line went dead")
    async with stage.as_(user) as http:
        await http.post(f"/v1/approvals/{given}/approve")
        await stage.lead(done)
        ref = (await http.get("/v1/uncertain")).json()["uncertain"][0]["ref"]
    run, approval = await stage.waiting(user)

    elsewhere = uuid4()
    stranger = await stage.person(Role.ADMIN, elsewhere)
    async with stage.as_(stranger, elsewhere) as http:
        foreign = await _answers(http, run, approval, ref)
        missing = await _answers(http, str(uuid4()), str(uuid4()), "0123456789abcdef")
        assert foreign == missing
        assert {status for status, _ in foreign} == {404}
        for path in LISTS:
            assert list((await http.get(path)).json().values()) == [[]]
        assert (await http.get("/v1/approvals", params={"run_id": run})).json() == {"approvals": []}

    async with stage.as_(user) as http:
        assert (await http.get(f"/v1/approvals/{approval}")).json()["status"] == "pending"
        assert len((await http.get("/v1/uncertain")).json()["uncertain"]) == 1
        assert (await http.post(f"/v1/runs/{run}/cancel")).json()["cancelling"] is True


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
async def test_without_a_token_only_the_health_check_answers(stage: "Stage") -> None:
    run, approval = await stage.waiting(await stage.person(Role.APPROVER))
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
            for path in (*LISTS, f"/v1/runs/{run}", f"/v1/approvals/{approval}"):
                answer = await http.get(path)
                assert (answer.status_code, answer.headers["www-authenticate"]) == (401, "Bearer"), way
            assert (await http.post(f"/v1/approvals/{approval}/approve")).status_code == 401
            assert (await http.get("/healthz")).status_code == 200


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
