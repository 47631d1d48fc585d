"""Runs over HTTP: once per request key, and only for members of their organization."""

import asyncio
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest

from agentic.contract.principal import Role

if TYPE_CHECKING:
    from tests.integration.api.conftest import Stage

ASK = {"agent": "scribe", "input": "write to Per", "request_key": "order-17"}


async def test_a_run_starts_once_per_request_key(stage: "Stage") -> None:
    async with stage.as_(await stage.person(Role.MEMBER)) as http:
        answers = await asyncio.gather(*(http.post("/v1/runs", json=ASK) for _ in range(5)))
        assert sorted(answer.status_code for answer in answers) == [200, 200, 200, 200, 201]
        assert len({answer.json()["run_id"] for answer in answers}) == 1
        assert [answer.json()["created"] for answer in answers].count(True) == 1
        assert len((await http.get("/v1/runs")).json()["runs"]) == 1


async def test_the_same_key_with_another_input_is_a_conflict(stage: "Stage") -> None:
    async with stage.as_(await stage.person(Role.MEMBER)) as http:
        await http.post("/v1/runs", json=ASK)
        answer = await http.post("/v1/runs", json={**ASK, "input": "write to Kari"})
    assert (answer.status_code, answer.json()["error"]["code"]) == (409, "conflict")


@pytest.mark.parametrize(
    "wrong",
    [
        {"agent": "nobody"},
        {"input": "  \n"},
        {"input": "x" * 300_000},
        {"request_key": ""},
        {"request_key": "a\u0000b"},
        {"organization_id": str(uuid4())},
        {"user_id": str(uuid4())},
        {"ceilings": {"max_cost": "1e200000"}},
        {"ceilings": {"max_cost": "1e-200000"}},
        {"ceilings": {"max_tool_calls": 10**30}},
    ],
    ids=[
        "unknown agent",
        "empty input",
        "long input",
        "empty key",
        "key with NUL",
        "organization",
        "user",
        "cost no numeric holds",
        "cost finer than any numeric",
        "calls no integer holds",
    ],
)
async def test_a_request_that_cannot_be_is_refused_before_anything_starts(
    stage: "Stage", wrong: dict[str, Any]
) -> None:
    async with stage.as_(await stage.person(Role.MEMBER)) as http:
        answer = await http.post("/v1/runs", json={**ASK, **wrong})
        assert answer.status_code == 422, answer.text
        assert answer.json()["error"]["code"] == "invalid_request"
        assert (await http.get("/v1/runs")).json() == {"runs": []}


async def test_an_input_is_refused_by_its_bytes_not_its_characters(stage: "Stage") -> None:
    async with stage.as_(await stage.person(Role.MEMBER)) as http:
        answer = await http.post("/v1/runs", json={**ASK, "input": "ø" * 140_000})
    assert answer.status_code == 409, answer.text
    assert "256 KiB" in answer.json()["error"]["message"]


async def test_the_tree_of_a_run_says_what_was_decided_and_done(stage: "Stage") -> None:
    user = await stage.person(Role.APPROVER)
    run, approval = await stage.waiting(user)
    async with stage.as_(user) as http:
        await http.post(f"/v1/approvals/{approval}/approve")
        assert await stage.lead(run) == "succeeded"
        tree = (await http.get(f"/v1/runs/{run}")).json()
    assert tree["run"]["id"] == run
    assert tree["run"]["answer"] == "done"
    assert [decision["effect"] for decision in tree["decisions"]] == ["require_approval", "allow"]
    assert [effect["kind"] for effect in tree["effects"]] == ["completed"]
    assert tree["approvals"][0]["id"] == approval
    assert tree["uncertain"] == []
    assert isinstance(tree["cost"]["cost"], str)
    assert isinstance(tree["cost"]["input_tokens"], int)


@pytest.mark.guarantee("A5")
async def test_the_record_of_a_run_is_checked_for_an_operator(stage: "Stage") -> None:
    user = await stage.person(Role.APPROVER)
    run, _ = await stage.waiting(user)
    async with stage.as_(user) as http:
        refused = await http.get(f"/v1/runs/{run}/audit")
    assert (refused.status_code, refused.json()["error"]["code"]) == (403, "not_permitted")
    async with stage.as_(await stage.person(Role.OPERATOR)) as http:
        found = (await http.get(f"/v1/runs/{run}/audit")).json()
    assert (found["run_id"], found["whole"], found["findings"]) == (run, True, [])
    assert [(head["chain"], head["lines"]) for head in found["heads"]] == [("policy_decisions", 1), ("effects", 0)]


@pytest.mark.guarantee("W1")
async def test_a_cancel_survives_a_function_server_that_is_down(stage: "Stage") -> None:
    user = await stage.person(Role.APPROVER)
    run, _ = await stage.waiting(user)
    stage.bus.down = True
    async with stage.as_(user) as http:
        answer = await http.post(f"/v1/runs/{run}/cancel")
        assert answer.json() == {"run_id": run, "cancelling": True, "state": "parked"}
        again = await http.post(f"/v1/runs/{run}/cancel")
        assert again.json()["cancelling"] is False
    assert await stage.lead(run) == "cancelled"


async def test_cancelling_a_run_that_is_over_changes_nothing(stage: "Stage") -> None:
    user = await stage.person(Role.APPROVER)
    run, approval = await stage.waiting(user)
    async with stage.as_(user) as http:
        await http.post(f"/v1/approvals/{approval}/reject")
        await stage.lead(run)
        answer = await http.post(f"/v1/runs/{run}/cancel")
    assert answer.json() == {"run_id": run, "cancelling": False, "state": "succeeded"}


@pytest.mark.parametrize("size", [600_000, 5_000_000])
async def test_a_body_over_the_cap_is_refused(stage: "Stage", size: int) -> None:
    async with stage.as_(await stage.person(Role.MEMBER)) as http:
        answer = await http.post("/v1/runs", content=b"x" * size, headers={"content-type": "application/json"})
    assert (answer.status_code, answer.json()["error"]["code"]) == (413, "too_large")
