"""Uncertain calls over HTTP: an operator settles them, once, from evidence."""

from typing import TYPE_CHECKING
from uuid import uuid4

import pytest

from agentic.contract.principal import Role

if TYPE_CHECKING:
    from tests.integration.api.conftest import Stage


async def _unknown(stage: "Stage") -> tuple[str, str]:
    """A run with a letter that may or may not have left; its id and the call's reference."""
    user = await stage.person(Role.APPROVER)
    run, approval = await stage.waiting(user)
    stage.tampers["post"] = ConnectionResetError("the line went dead")
    async with stage.as_(user) as http:
        await http.post(f"/v1/approvals/{approval}/approve")
        await stage.lead(run)
        tree = (await http.get(f"/v1/runs/{run}")).json()
    assert [call["tool"] for call in tree["uncertain"]] == ["letters.post"]
    return run, tree["uncertain"][0]["ref"]


@pytest.mark.parametrize(("act", "kind"), [("confirm", "confirmed"), ("deny", "denied")])
async def test_an_operator_settles_a_call_with_evidence(stage: "Stage", act: str, kind: str) -> None:
    run, ref = await _unknown(stage)
    async with stage.as_(await stage.person(Role.OPERATOR)) as http:
        assert [call["ref"] for call in (await http.get("/v1/uncertain")).json()["uncertain"]] == [ref]
        answer = await http.post(f"/v1/uncertain/{ref}/{act}", json={"evidence": "asked the post office"})
        assert answer.json() == {"ref": ref, "tool": "letters.post", "settled": kind}
        tree = (await http.get(f"/v1/runs/{run}")).json()
        assert tree["effects"][-1]["kind"] == kind
        assert tree["effects"][-1]["note"] == "asked the post office"
        again = await http.post(f"/v1/uncertain/{ref}/{act}", json={"evidence": "again"})
        assert again.status_code == 409
        assert f"was settled already: {kind}: it " in again.json()["error"]["message"]
    elsewhere = uuid4()
    other = await stage.person(Role.OPERATOR, organization=elsewhere)
    async with stage.as_(other, elsewhere) as http:
        assert (await http.post(f"/v1/uncertain/{ref}/{act}", json={"evidence": "not mine"})).status_code == 404
    assert stage.posted == ["per@fjord.example"]


async def test_an_approver_may_look_but_not_settle(stage: "Stage") -> None:
    _, ref = await _unknown(stage)
    async with stage.as_(await stage.person(Role.APPROVER)) as http:
        assert (await http.get(f"/v1/uncertain/{ref}")).json()["ref"] == ref
        answer = await http.post(f"/v1/uncertain/{ref}/deny", json={"evidence": "I believe so"})
        assert answer.status_code == 403
        assert len((await http.get("/v1/uncertain")).json()["uncertain"]) == 1


async def test_without_evidence_nothing_is_settled(stage: "Stage") -> None:
    _, ref = await _unknown(stage)
    async with stage.as_(await stage.person(Role.OPERATOR)) as http:
        for body in ({}, {"evidence": ""}, {"evidence": "  a "}):
            assert (await http.post(f"/v1/uncertain/{ref}/confirm", json=body)).status_code in (409, 422)
        assert len((await http.get("/v1/uncertain")).json()["uncertain"]) == 1
