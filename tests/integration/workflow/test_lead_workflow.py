"""The example workflow on the embedded engine: side by side, a branch, a person in between."""

import pytest

from examples.lead_workflow import app
from workflow_stage import stage


async def test_two_nodes_run_side_by_side_and_what_they_found_decides_the_branch(database: str) -> None:
    async with stage(database, app) as s:
        await s.send("leads/arrived", company="Tiny", email="ada@tiny.test")
        (run,) = await s.ended()
        assert run.result == {"company": "Tiny", "outcome": "not written to", "noted": True}
        assert await s.states() == {
            "container": "succeeded",
            "size": "succeeded",
            "account": "succeeded",
            "note": "succeeded",
        }
        (container, *nodes) = await s.runs()
        assert {(node["root_run_id"], node["parent_run_id"], node["kind"]) for node in nodes} == {
            (container["id"], container["id"], "workflow")
        }
        family = (await s.platform.runs.tree(s.organization_id, container["id"])).family
        assert family[0]["node"] is None
        assert sorted(run["node"] for run in family[1:]) == ["account", "note", "size"]
        assert container["answer"] == '{"company":"Tiny","outcome":"not written to","noted":true}'


@pytest.mark.guarantee("A2", "W3")
async def test_an_email_waits_for_a_person_holding_nothing_and_goes_out_after_the_decision(database: str) -> None:
    async with stage(database, app) as s:
        await s.send("leads/arrived", company="Larger Ltd", email="ada@larger.test")
        await s.waiting("email/approval-0/wait-0")
        assert (await s.states())["email"] == "parked"
        assert all(run["lease_expires_at"] is None for run in await s.runs())
        assert await s.decide() == 1
        await s.deliver()
        (run,) = await s.ended()
        assert run.result == {"company": "Larger Ltd", "outcome": "written to", "noted": True}
        assert set((await s.states()).values()) == {"succeeded"}


@pytest.mark.guarantee("A2")
async def test_a_rejection_is_an_answer_that_a_function_may_go_on_with(database: str) -> None:
    async with stage(database, app) as s:
        await s.send("leads/arrived", company="Larger Ltd", email="ada@larger.test")
        await s.waiting("email/approval-0/wait-0")
        await s.decide("rejected")
        await s.deliver()
        (run,) = await s.ended()
        assert run.result == {"company": "Larger Ltd", "outcome": "not written to: rejected", "noted": True}
        assert (await s.states())["email"] == "failed"
