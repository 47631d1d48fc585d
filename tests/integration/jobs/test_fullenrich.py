"""FullEnrich through the real invoker and its stand-in: submitted once, paid once, collected by reference (J1, M1, M2)."""

import asyncio
import json
from decimal import Decimal
from typing import Any
from uuid import UUID, uuid4

import pytest

from agentic.local.providers.stand_in import Answer, Hold, Lost
from agentic.runtime.agent.agno.scripted import ScriptedModel
from agentic.runtime.agent.script import Turn
from agentic.services.provider_jobs.fullenrich import client
from agentic.services.provider_jobs.models import JobState, ResultMissing
from agentic.testing import Call, Calls, Say
from core_world import execute, journal, rows
from jobs_stage import CREDIT, IDA, PER, SUBMIT, JobsStage, body, jobs_stage
from money import ceiling


def posts(s: JobsStage) -> int:
    """How many batches were sent."""
    return sum(request.method == "POST" for request in s.vendor.requests)


async def only_job(s: JobsStage) -> Any:
    """The one job there is."""
    [job] = await s.h.platform.jobs.find(s.h.organization_id, which="all", limit=10)
    return job


def collects(job_id: str) -> list[Turn]:
    return [Calls([Call("fullenrich.collect", {"job_id": job_id})]), Say("Done.")]


@pytest.mark.guarantee("J1", "M1", "M2")
async def test_a_batch_is_submitted_under_our_name_and_its_money_is_the_job_s_until_it_ends(database: str) -> None:
    async with jobs_stage(database) as s:
        run_id, told = await s.submitted()
        job = await only_job(s)
        assert told == {"job_id": str(job.id), "accepted": True}
        assert job.provider_job_id == s.vendor.last.id
        sent = s.vendor.requests[0].json
        assert sent["name"] == f"agentic:{job.id}"
        assert sent["webhook_url"] == f"https://api.shop.example/api/v1/agentic/webhooks/fullenrich/{job.id}"
        assert [row["custom"] for row in sent["data"]] == [{"ref": "a"}, {"ref": "b"}]
        assert [row["enrich_fields"] for row in sent["data"]] == [["contact.work_emails"]] * 2
        assert sent["data"][0]["domain"] == "nordlys.example"
        assert await s.lines() == []
        assert await s.holds() == [("job", "held")]

        s.vendor.finish(s.vendor.last, found={"a": "ida@nordlys.example"})
        assert await s.deliver(s.vendor.last) == 200
        await s.settle_all()
        [line] = await s.lines()
        span = (await s.h.calls(run_id))[-1]  # the first one asked for the approval
        assert (line["cost"], line["run_id"], line["span_id"]) == (CREDIT, run_id, span["id"])
        assert await s.holds() == [("job", "settled")]


@pytest.mark.guarantee("J1", "J3")
async def test_a_lost_answer_is_no_second_batch_and_the_callback_binds_the_job(database: str) -> None:
    async with jobs_stage(database) as s:
        s.vendor.then(Lost())
        run_id, told = await s.submitted()
        job = await only_job(s)
        assert told == {"job_id": str(job.id), "accepted": False}
        assert posts(s) == 1
        assert [row["state"] for row in await journal(s.h, run_id)] == ["completed"]
        assert (await s.holds(), await s.lines()) == ([("job", "held")], [])
        s.vendor.take(s.vendor.requests[0].json)  # the vendor has it all the same
        s.vendor.finish(s.vendor.last, found={"a": "ida@nordlys.example"})
        assert await s.deliver(s.vendor.last) == 200
        row = await only_job(s)
        assert (row.state, row.provider_job_id) == (JobState.COMPLETED, s.vendor.last.id)
        await s.settle_all()
        assert len(await s.lines()) == 1


@pytest.mark.guarantee("W2")
async def test_a_callback_that_comes_before_the_submit_s_answer_is_kept_and_matched(database: str) -> None:
    hold = Hold()
    async with jobs_stage(database) as s:
        s.vendor.then(hold)
        run_id = await s.h.start()
        await s.h.settle(run_id)
        await s.h.decide(run_id)
        led = asyncio.create_task(s.h.settle(run_id))
        await asyncio.wait_for(hold.reached.wait(), 20)
        job = await only_job(s)
        first = s.vendor.take(s.vendor.requests[0].json)
        s.vendor.finish(first, found={})
        assert await s.deliver(first) == 200
        hold.release.set()
        await led
        row = await only_job(s)
        # the held request made the stand-in take it again; the id the callback named stays
        assert (row.state, row.provider_job_id) == (JobState.COMPLETED, first.id)
        assert (await s.told(run_id))["job_id"] == str(job.id)
        await s.settle_all()
        assert [line["cost"] for line in await s.lines()] == [Decimal(0)]
        assert await s.holds() == [("job", "settled")]


@pytest.mark.guarantee("J1")
async def test_a_definite_refusal_is_told_and_the_same_call_sends_nothing_again(database: str) -> None:
    async with jobs_stage(database, script=[SUBMIT, SUBMIT, Say("Done.")]) as s:
        s.vendor.then(Answer(status=429, json={"code": "error.rate.limit", "message": "wait"}))
        run_id, told = await s.submitted()
        assert told["reason_code"] == "retryable_upstream"
        job = await only_job(s)
        assert (job.state, job.provider_job_id) == (JobState.SUBMITTED, None)
        assert "429" in str(job.note)
        assert await s.lines() == []
        assert posts(s) == 1
        assert ("job", "held") in await s.holds()
        assert run_id == job.run_id


@pytest.mark.parametrize("words", ["", "Not enough credits", "the budget of this run is exhausted"])
async def test_an_account_that_has_run_dry_is_no_budget_of_ours(database: str, words: str) -> None:
    async with jobs_stage(database, script=[SUBMIT, Say("Done.")]) as s:
        s.vendor.then(Answer(status=402, json={"code": "error.credits.insufficient", "message": words}))
        run_id, told = await s.submitted()
        assert told["reason_code"] == "unavailable"
        run = (await s.h.tree(run_id)).run
        assert (run["state"], run["partial_reason"]) == ("succeeded", None)
        assert posts(s) == 1


@pytest.mark.guarantee("J5", "J1")
async def test_a_worker_that_died_after_the_reservation_leaves_one_job_and_no_second_request(database: str) -> None:
    """The next leader of the run finds the claim and the job; whatever became of the request, none follows."""
    async with jobs_stage(database) as s:
        run_id, told = await s.submitted()
        await execute(
            s.h,
            "update agent.idempotency_keys set state = 'processing', lease_expires_at = clock_timestamp() - interval '1 second', "
            "completed_at = null, output = null, outcome_status = null where run_id = %(id)s",
            id=run_id,
        )
        await execute(
            s.h,
            "update agent.proposals set state = 'open', done_at = null, outcome_code = null where run_id = %(id)s",
            id=run_id,
        )
        assert await s.h.platform.journal.sweep(grace_s=0, limit=10) == 0  # none is left to an operator
        assert [row["state"] for row in await journal(s.h, run_id)] == ["completed"]
        assert posts(s) == 1
        assert (await only_job(s)).id == UUID(told["job_id"])
        assert (await s.holds(), await s.lines()) == ([("job", "held")], [])


@pytest.mark.guarantee("J1")
async def test_a_worker_that_died_before_the_request_left_leaves_a_job_that_nobody_sends(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The call is claimed again, finds the job it had reserved, and its second hold is given back."""

    async def dies(*_: Any, **__: Any) -> str:
        raise RuntimeError("the worker is gone")

    async with jobs_stage(database) as s:
        monkeypatch.setattr(client, "submit", dies)
        _, told = await s.submitted()
        assert told == {"job_id": str((await only_job(s)).id), "accepted": False}
        assert posts(s) == 0
        assert sorted(await s.holds()) == [("claim", "released"), ("job", "held")]


@pytest.mark.guarantee("M2")
async def test_what_a_job_holds_counts_against_the_ceiling_of_its_tree(database: str) -> None:
    again = Calls([Call("fullenrich.submit", {"contacts": [PER]})])
    async with jobs_stage(database, script=[SUBMIT, again, Say("Done.")], ceilings=ceiling("4.00")) as s:
        run_id = await s.h.start()
        await s.h.settle(run_id)
        await s.h.decide(run_id)
        await s.h.settle(run_id)
        await s.h.decide(run_id)
        settled = await s.h.settle(run_id)
        assert settled.partial_reason == "budget_exhausted"
        assert posts(s) == 1


@pytest.mark.parametrize(
    "contacts",
    [
        [],
        [{**IDA, "ref": str(n)} for n in range(26)],
        [IDA, IDA],
        [{"ref": "a", "first_name": "Ida", "last_name": "Holm"}],
        [{**IDA, "ref": "x" * 65}],
        [{**IDA, "domain": "no domain"}],
        [{**IDA, "linkedin_url": "https://elsewhere.example/in/ida"}],
    ],
    ids=["none", "26", "same ref", "nothing to find by", "long ref", "no domain", "other site"],
)
async def test_a_batch_that_cannot_be_is_refused_before_anything_is_reserved(database: str, contacts: Any) -> None:
    script: list[Turn] = [Calls([Call("fullenrich.submit", {"contacts": contacts})]), Say("Done.")]
    async with jobs_stage(database, script=script) as s:
        _, told = await s.submitted(approve=False)
        assert told["reason_code"] == "invalid_input"
        assert (posts(s), await s.holds()) == (0, [])


@pytest.mark.guarantee("M3", "B1")
async def test_collect_maps_exact_references_and_says_what_is_missing_doubled_or_unreadable(database: str) -> None:
    wanted: list[str] = []
    async with jobs_stage(database, script=lambda: ScriptedModel(script=collects(wanted[0]))) as s:
        job = await s.job(vendor_id="v-1", refs=["a", "b", "c", "d", "e", "f"])
        mail = {"email": "ida@nordlys.example", "status": "DELIVERABLE"}
        data: list[Any] = [
            {"custom": {"ref": "f"}, "contact_info": {"most_probable_work_email": {"email": "x" * 400 + "@y.example"}}},
            {"custom": {"ref": "a"}, "contact_info": {"most_probable_work_email": mail}},
            {"custom": {"ref": "c"}, "contact_info": {"most_probable_work_email": mail}},
            {"custom": {"ref": "c"}, "contact_info": {}},
            {"custom": {"ref": "d"}, "contact_info": {"most_probable_work_email": {"email": ""}, "work_emails": None}},
            {"custom": {"ref": "stranger"}, "contact_info": {}},
            {"custom": None},
            "no row",
        ]
        wanted.append(str(job.id))
        assert await s.post(job.id, body("v-1", job.id, "CREDITS_INSUFFICIENT", data=data)) == 200
        found = await _collected(s)
        assert found["state"] == "failed"
        assert [(line["ref"], line["outcome"]) for line in found["results"]] == [
            ("a", "found"),
            ("b", "missing"),
            ("c", "duplicate"),
            ("d", "not_found"),
            ("e", "missing"),
            ("f", "malformed"),
        ]
        assert found["results"][0] == {
            "ref": "a",
            "outcome": "found",
            "email": "ida@nordlys.example",
            "provider_status": "DELIVERABLE",
            "confidence": "high",
            "verification": "verified",
        }
        assert all(line["email"] is None for line in found["results"][1:])
        assert (found["unknown_rows"], found["malformed_rows"]) == (1, 2)
        assert await _collected(s) == found
        await s.settle_all()
        assert len(await s.lines()) == 1


async def _collected(s: JobsStage) -> dict[str, Any]:
    """What an agent reads of the job that its script names."""
    run_id = await s.h.start()
    await s.h.settle(run_id)
    return await s.told(run_id)


@pytest.mark.guarantee("T1")
async def test_an_unknown_job_and_a_foreign_one_are_both_not_found(database: str) -> None:
    foreign, unknown = uuid4(), uuid4()
    script = [*collects(str(foreign))[:1], *collects(str(unknown))]
    async with jobs_stage(database, script=script) as s:
        other = await s.job()
        await execute(
            s.h,
            "insert into agent.runs (id, organization_id, request_key, request_digest, root_run_id, definition_name, definition) "
            "values (%(id)s, %(org)s, 'k', 'd', %(id)s, 'a', '{}')",
            id=foreign,
            org=uuid4(),
        )
        await execute(
            s.h,
            "insert into agent.provider_jobs (id, organization_id, root_run_id, run_id, provider) "
            "select id, organization_id, id, id, 'fullenrich' from agent.runs where id = %(id)s",
            id=foreign,
        )
        run_id = await s.h.start()
        await s.h.settle(run_id)
        told = [json.dumps(await s.told(run_id, n), sort_keys=True) for n in range(2)]
        assert told[0] == told[1]
        assert json.loads(told[0])["reason_code"] == "not_found"
        assert other.id != foreign


async def test_a_result_that_is_not_stored_is_a_fault_and_no_empty_answer(database: str) -> None:
    async with jobs_stage(database) as s:
        job = await s.job(vendor_id="v-1")
        assert await s.post(job.id, body("v-1", job.id, data=["x" * 40_000])) == 200
        await execute(s.h, "delete from agent.provider_job_results")
        with pytest.raises(ResultMissing):
            await s.h.platform.jobs.result_of(await s.read(job.id))
        assert await rows(s.h, "select from agent.provider_job_results") == []
