"""The route of provider callbacks: who is believed, what is matched, and what the sender is told (T3, W2)."""

import asyncio
import gzip
from collections.abc import AsyncIterator
from uuid import uuid4

import pytest

from agentic.api import webhooks
from agentic.api.webhooks import MAX_BODY_BYTES, FailureLimits
from agentic.services.provider_jobs.models import JobState
from core_world import execute, rows
from jobs_stage import EARLIER_KEY, KEY, body, jobs_stage


async def test_a_signed_report_ends_the_job_and_its_event_goes_at_once(database: str) -> None:
    async with jobs_stage(database) as s:
        job = await s.job()
        assert await s.post(job.id, body("v-1", job.id, data=[{"n": 1}])) == 200
        row = await s.read(job.id)
        assert (row.state, row.provider_job_id, row.cost) == (
            JobState.COMPLETED,
            "v-1",
            {"quantity": "1", "unit": "credit"},
        )
        assert row.result["data"] == [{"n": 1}]
        assert [event.job_id for event in s.h.bus.events] == [job.id]
        assert await s.drops() == {}


@pytest.mark.guarantee("T3")
async def test_a_callback_whose_signature_fails_changes_nothing_and_leaves_only_a_count(database: str) -> None:
    async with jobs_stage(database) as s:
        job = await s.job()
        sent = body("v-1", job.id)
        good = s.vendor.signed(sent)["X-Signature-SHA1"]
        forged = [
            {},
            {"X-Signature-SHA1": ""},
            {"X-Signature-SHA1": "é".encode("latin-1").decode("latin-1")},
            {"X-Signature-SHA1": good[:-1]},
            {"X-Signature-SHA1": f"sha1={good}"},
            s.vendor.signed(sent, key="somebody-else"),
            s.vendor.signed(sent.replace(b" \n", b"")),
        ]
        statuses = [
            (
                await s.http.post(
                    f"/api/v1/agentic/webhooks/fullenrich/{job.id}",
                    content=sent,
                    headers=[(name.encode(), value.encode("latin-1")) for name, value in headers.items()],
                )
            ).status_code
            for headers in forged
        ]
        assert statuses == [401] * len(forged)
        assert (await s.read(job.id)).state is JobState.SUBMITTED
        assert await s.drops() == {"bad_signature": len(forged)}
        assert await rows(s.h, "select from agent.idempotency_keys") == []


@pytest.mark.guarantee("T3")
async def test_the_signature_is_over_the_bytes_as_they_came(database: str) -> None:
    """Field case 16: order, blanks, escapes and a line feed at the end, whatever the headers say of an encoding."""
    async with jobs_stage(database) as s:
        job = await s.job()
        sent = b'{ "status":"FINISHED","cost":{"credits":1 },"n":1.0,"data":["caf\\u00e9"],"name":"agentic:%b","id":"v-1" }\n'
        raw = sent.replace(b"%b", str(job.id).encode())
        headers = {**s.vendor.signed(raw), "Content-Encoding": "gzip"}
        assert await s.post(job.id, raw, headers=headers) == 200
        assert (await s.read(job.id)).result["data"] == ["café"]
        other = await s.job()
        packed = gzip.compress(body("v-2", other.id))
        assert await s.post(other.id, packed) == 400
        assert await s.post(other.id, b"") == 400
        assert (await s.read(other.id)).state is JobState.SUBMITTED


async def test_what_is_too_large_is_refused_before_it_is_hashed(database: str) -> None:
    async with jobs_stage(database) as s:
        job = await s.job()
        assert await s.post(job.id, b"x" * (MAX_BODY_BYTES + 1)) == 413

        async def unsaid() -> object:
            for _ in range(3):
                yield b"x" * 1024 * 1024

        reply = await s.http.post(f"/api/v1/agentic/webhooks/fullenrich/{job.id}", content=unsaid())  # type: ignore[arg-type]
        assert reply.status_code == 413
        assert await s.drops() == {}


async def test_a_body_that_does_not_come_is_not_waited_for(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(webhooks, "BODY_S", 0.05)
    async with jobs_stage(database) as s:
        job = await s.job()

        async def begun() -> AsyncIterator[bytes]:
            yield body("v-1", job.id)[:10]
            await asyncio.Event().wait()

        path = f"/api/v1/agentic/webhooks/fullenrich/{job.id}"
        reply = await asyncio.wait_for(s.http.post(path, content=begun()), 30)
        assert (reply.status_code, reply.json()["error"]["code"]) == (408, "too_slow")
        assert (await s.read(job.id)).state is JobState.SUBMITTED
        assert await s.drops() == {}


async def test_both_keys_of_a_rotation_are_believed_and_upper_case_too(database: str) -> None:
    async with jobs_stage(database) as s:
        first, second = await s.job(), await s.job()
        assert await s.post(first.id, body("v-1", first.id), key=EARLIER_KEY) == 200
        sent = body("v-2", second.id)
        headers = {name: value.upper() for name, value in s.vendor.signed(sent, key=KEY).items()}
        assert await s.post(second.id, sent, headers=headers) == 200


async def test_an_unknown_provider_is_not_found_and_an_unknown_job_is_counted_and_taken(database: str) -> None:
    async with jobs_stage(database) as s:
        job = await s.job()
        assert await s.post(job.id, body("v-1", job.id), to="nobody") == 404
        for unknown in (uuid4(), "no-uuid"):
            assert await s.post(unknown, body("v-1", unknown)) == 200
        assert await s.drops() == {"unknown_job": 2}


@pytest.mark.guarantee("T3", "T1")
async def test_a_signed_report_of_one_job_is_nothing_to_another(database: str) -> None:
    """A body that names another job, an id that another has, a name that is not exact: nothing binds and nothing moves."""
    async with jobs_stage(database) as s:
        known, fresh = await s.job(vendor_id="v-1"), await s.job()
        for wrong in (
            body("v-1", known.id),
            body("v-2", known.id),
            body("v-2", f"{fresh.id} "),
            body("v-2", str(fresh.id).upper()),
            body("v-2", fresh.id, name=None),
            body("v-1", fresh.id),
        ):
            assert await s.post(fresh.id, wrong) == 200
        assert await s.post(known.id, body("v-2", known.id)) == 200
        assert (await s.read(fresh.id)).provider_job_id is None
        assert {(await s.read(job.id)).state for job in (known, fresh)} == {JobState.SUBMITTED}
        assert await s.drops() == {"job_mismatch": 7}
        assert s.h.bus.events == []


async def test_progress_is_noted_and_neither_claims_nor_wakes(database: str) -> None:
    async with jobs_stage(database) as s:
        job = await s.job()
        assert await s.post(job.id, body("v-1", job.id, "IN_PROGRESS", credits_=0)) == 200
        row = await s.read(job.id)
        assert (row.state, row.provider_job_id) == (JobState.RUNNING, "v-1")
        assert (await s.drops(), s.h.bus.events) == ({"not_terminal": 1}, [])
        assert await s.post(job.id, body("v-1", job.id)) == 200
        assert await s.post(job.id, body("v-1", job.id, "IN_PROGRESS", credits_=0)) == 200
        assert (await s.read(job.id)).state is JobState.COMPLETED


async def test_a_large_report_is_kept_beside_the_row_and_read_back_whole(database: str) -> None:
    async with jobs_stage(database) as s:
        job = await s.job()
        rows_ = [{"custom": {"ref": "a"}, "text": "é\u0000" * 100} for _ in range(200)]
        assert await s.post(job.id, body("v-1", job.id, data=rows_)) == 200
        row = await s.read(job.id)
        assert (row.result, row.state) == (None, JobState.COMPLETED)
        assert (await s.h.platform.jobs.result_of(row))["data"] == rows_


@pytest.mark.guarantee("W2")
async def test_nothing_is_stored_of_a_report_whose_body_cannot_be_kept(database: str) -> None:
    """The row, the claim on the delivery and the event are the body's commit; the provider delivers again."""
    async with jobs_stage(database) as s:
        job = await s.job()
        large = body("v-1", job.id, data=["x" * 40_000])
        await execute(s.h, "alter table agent.provider_job_results add constraint full_disk check (false) not valid")
        assert await s.post(job.id, large) == 500
        assert (await s.read(job.id)).provider_job_id is None
        assert await rows(s.h, "select from agent.outbox") == []
        await execute(s.h, "alter table agent.provider_job_results drop constraint full_disk")
        assert await s.post(job.id, large) == 200
        assert (await s.read(job.id)).state is JobState.COMPLETED


async def test_only_failed_signatures_are_charged_to_their_caller(database: str) -> None:
    async with jobs_stage(database, failures=FailureLimits(burst=2, per_minute=0.001)) as s:
        jobs = [await s.job() for _ in range(4)]
        assert [await s.post(job.id, body(f"v-{n}", job.id)) for n, job in enumerate(jobs)] == [200] * 4
        assert [await s.post(jobs[0].id, b"{}", key="wrong") for _ in range(3)] == [401, 401, 429]
        assert await s.drops() == {"bad_signature": 2}
