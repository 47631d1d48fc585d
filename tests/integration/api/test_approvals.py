"""Approvals over HTTP: decided once, in time, by somebody who may."""

import asyncio
from typing import TYPE_CHECKING
from uuid import uuid4

import pytest

from agentic.contract.principal import Role

if TYPE_CHECKING:
    from tests.integration.api.conftest import Stage


@pytest.mark.guarantee("A3")
async def test_ten_clicks_at_once_are_one_decision_and_one_letter(stage: "Stage") -> None:
    user = await stage.person(Role.APPROVER)
    run, approval = await stage.waiting(user)
    async with stage.as_(user) as http:
        answers = await asyncio.gather(*(http.post(f"/v1/approvals/{approval}/approve") for _ in range(10)))
        assert {answer.status_code for answer in answers} == {200}
        assert {answer.json()["decided_at"] for answer in answers} == {answers[0].json()["decided_at"]}
    states = await asyncio.gather(*(stage.lead(run) for _ in range(3)))
    assert sorted(states) == ["idle", "idle", "succeeded"]
    assert stage.posted == ["per@fjord.example"]


@pytest.mark.guarantee("A3")
async def test_the_opposite_decision_is_a_conflict_that_names_the_first(stage: "Stage") -> None:
    first, second = await stage.person(Role.APPROVER), await stage.person(Role.ADMIN)
    _, approval = await stage.waiting(first)
    async with stage.as_(first) as http:
        assert (await http.post(f"/v1/approvals/{approval}/reject", json={"comment": "not yet"})).status_code == 200
    async with stage.as_(second) as http:
        answer = await http.post(f"/v1/approvals/{approval}/approve")
        assert answer.status_code == 409
        assert str(first) in answer.json()["error"]["message"]
        kept = (await http.get(f"/v1/approvals/{approval}")).json()
    assert (kept["status"], kept["comment"], kept["decided_by"]) == ("rejected", "not yet", str(first))


@pytest.mark.guarantee("A3")
async def test_of_a_yes_and_a_no_at_once_exactly_one_counts(stage: "Stage") -> None:
    user = await stage.person(Role.APPROVER)
    _, approval = await stage.waiting(user)
    async with stage.as_(user) as http:
        answers = await asyncio.gather(
            http.post(f"/v1/approvals/{approval}/approve"), http.post(f"/v1/approvals/{approval}/reject")
        )
    assert sorted(answer.status_code for answer in answers) == [200, 409]


@pytest.mark.guarantee("A4")
async def test_an_approval_past_its_time_cannot_be_given_though_no_sweep_ran(stage: "Stage") -> None:
    user = await stage.person(Role.APPROVER)
    run, approval = await stage.waiting(user)
    await stage.platform.database.count(
        "update agent.approvals set expires_at = clock_timestamp() - interval '1 second' where id = %(id)s",
        {"id": approval},
    )
    async with stage.as_(user) as http:
        assert (await http.get(f"/v1/approvals/{approval}")).json()["status"] == "expired"
        assert (await http.get("/v1/approvals", params={"status": "pending"})).json() == {"approvals": []}
        answer = await http.post(f"/v1/approvals/{approval}/approve")
    assert answer.status_code == 409
    assert "expired" in answer.json()["error"]["message"]
    assert await stage.lead(run) == "succeeded"
    assert stage.posted == []


@pytest.mark.guarantee("A5")
@pytest.mark.parametrize("role", [Role.MEMBER, None])
async def test_somebody_without_the_role_decides_nothing(stage: "Stage", role: Role | None) -> None:
    _, approval = await stage.waiting(await stage.person(Role.APPROVER))
    async with stage.as_(await stage.person(role)) as http:
        answer = await http.post(f"/v1/approvals/{approval}/approve")
    assert (answer.status_code, answer.json()["error"]["code"]) == (403, "not_permitted")
    async with stage.as_(await stage.person(Role.MEMBER)) as http:
        assert (await http.get(f"/v1/approvals/{approval}")).json()["status"] == "pending"


@pytest.mark.guarantee("A5")
async def test_a_role_taken_away_counts_at_once_though_the_token_lives_on(stage: "Stage") -> None:
    user = await stage.person(Role.APPROVER)
    _, approval = await stage.waiting(user)
    async with stage.as_(user) as http:
        await stage.platform.approval_store.put_member(stage.organization, user, Role.MEMBER)
        assert (await http.post(f"/v1/approvals/{approval}/approve")).status_code == 403


@pytest.mark.guarantee("W1")
async def test_a_decision_survives_a_function_server_that_is_down(stage: "Stage") -> None:
    user = await stage.person(Role.APPROVER)
    run, approval = await stage.waiting(user)
    stage.bus.down, stage.bus.sent[:] = True, []
    async with stage.as_(user) as http:
        assert (await http.post(f"/v1/approvals/{approval}/approve")).status_code == 200
    assert stage.bus.sent == []
    stage.bus.down = False
    await stage.platform.database.count("update agent.outbox set next_attempt_at = clock_timestamp()", {})
    assert await stage.platform.sweeper.outbox() == 1
    assert [str(event.run_id) for event in stage.bus.sent] == [run]


async def test_a_comment_that_is_too_long_is_refused(stage: "Stage") -> None:
    user = await stage.person(Role.APPROVER)
    _, approval = await stage.waiting(user)
    async with stage.as_(user) as http:
        answer = await http.post(f"/v1/approvals/{approval}/approve", json={"comment": "x" * 2001})
        assert answer.status_code == 422
        assert "x" * 10 not in answer.text
        assert (await http.post(f"/v1/approvals/{approval}/approve", content=b"x" * 70_000)).status_code == 413
        assert (await http.get(f"/v1/approvals/{uuid4()}")).status_code == 404


@pytest.mark.guarantee("A3")
async def test_the_question_of_a_run_that_is_asked_to_stop_can_no_longer_be_decided_though_no_worker_ran(
    stage: "Stage",
) -> None:
    user = await stage.person(Role.APPROVER)
    run, approval = await stage.waiting(user)
    async with stage.as_(user) as http:
        assert (await http.post(f"/v1/runs/{run}/cancel")).json()["cancelling"] is True
        assert (await http.get("/v1/approvals?status=pending")).json() == {"approvals": []}
        answer = await http.post(f"/v1/approvals/{approval}/approve")
        assert (answer.status_code, answer.json()["error"]["code"]) == (409, "conflict")
        assert "is cancelled" in answer.json()["error"]["message"]
        assert await stage.lead(run) == "cancelled"
        assert (await http.get(f"/v1/approvals/{approval}")).json()["status"] == "cancelled"
    assert stage.posted == []
