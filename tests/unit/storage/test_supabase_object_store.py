"""The adapter for Supabase Storage, over a socket: once, whole, and a clear end for every failure."""

import logging
from collections.abc import AsyncIterator
from uuid import UUID, uuid4

import pytest

from agentic.contract.errors import ProgramFault
from agentic.contract.trust import Trust
from agentic.services.artifacts.keeping import ElsewhereOrInTheRow
from agentic.services.artifacts.ports import BodiesUnavailable
from agentic.services.tools.records import ArtifactRecord
from agentic.storage.supabase_object_store import SupabaseBodies, object_store_of
from object_store import BUCKET, KEY, ObjectStore, object_store

ORGANIZATION, RUN = UUID(int=1), UUID(int=2)


@pytest.fixture
async def store() -> AsyncIterator[ObjectStore]:
    async with object_store() as serving:
        yield serving


@pytest.fixture
async def bodies(store: ObjectStore) -> AsyncIterator[SupabaseBodies]:
    async with SupabaseBodies(url=store.url, key=KEY, bucket=BUCKET) as opened:
        yield opened


def record(body: bytes = b"whole", id: UUID | None = None) -> ArtifactRecord:
    return ArtifactRecord(
        id=id or uuid4(), span_id=uuid4(), trust=Trust.EXTERNAL, body=body, complete=True, media_type="text/csv"
    )


async def put(bodies: SupabaseBodies, kept: ArtifactRecord) -> ArtifactRecord:
    return await bodies.put(kept, organization_id=ORGANIZATION, run_id=RUN)


async def test_the_bytes_go_under_organization_run_and_id_and_the_record_names_the_place(
    store: ObjectStore, bodies: SupabaseBodies
) -> None:
    kept = record()
    put_away = await put(bodies, kept)
    path = f"{ORGANIZATION}/{RUN}/{kept.id}"
    assert store.objects == {path: ("text/csv", b"whole")}
    assert (put_away.place, put_away.body) == (f"{BUCKET}/{path}", None)
    assert (put_away.sha256, put_away.size_bytes, put_away.id) == (kept.sha256, 5, kept.id)
    [(method, sent_to, headers)] = store.seen
    assert (method, sent_to) == ("POST", f"/storage/v1/object/{BUCKET}/{path}")
    assert (headers["authorization"], headers["apikey"], headers["x-upsert"]) == (f"Bearer {KEY}", KEY, "false")
    assert await put(bodies, put_away) is put_away


async def test_an_upload_whose_answer_was_lost_is_sent_again_and_is_there_once(
    store: ObjectStore, bodies: SupabaseBodies
) -> None:
    store.cuts = 1
    kept = await put(bodies, record())
    assert kept.body is None
    assert [method for method, _, _ in store.seen] == ["POST", "POST", "GET"]
    assert len(store.objects) == 1


async def test_other_bytes_under_the_same_id_are_not_replaced(store: ObjectStore, bodies: SupabaseBodies) -> None:
    first = record()
    await put(bodies, first)
    with pytest.raises(BodiesUnavailable, match="other bytes"):
        await put(bodies, record(b"else", first.id))
    assert [body for _, body in store.objects.values()] == [b"whole"]


async def test_a_busy_service_is_asked_twice_and_then_given_up(store: ObjectStore, bodies: SupabaseBodies) -> None:
    store.busy = [503]
    assert (await put(bodies, record())).place is not None
    store.busy = [503, 500]
    with pytest.raises(BodiesUnavailable, match="status 500"):
        await put(bodies, record())


async def test_a_wrong_key_is_named_by_status_alone(store: ObjectStore) -> None:
    async with SupabaseBodies(url=store.url, key="wrong-key-987654", bucket=BUCKET) as bodies:
        with pytest.raises(BodiesUnavailable, match="status 403") as raised:
            await put(bodies, record())
    assert "wrong-key" not in str(raised.value)


async def test_a_redirect_is_not_followed_with_the_key(store: ObjectStore, bodies: SupabaseBodies) -> None:
    store.busy = [307]
    with pytest.raises(BodiesUnavailable, match="status 307"):
        await put(bodies, record())
    assert len(store.seen) == 1


async def test_every_object_of_a_run_goes_page_by_page_and_the_other_runs_stay(
    store: ObjectStore, bodies: SupabaseBodies
) -> None:
    for number in range(230):
        store.objects[f"{ORGANIZATION}/{RUN}/{number}"] = ("text/plain", b"x")
    other = f"{ORGANIZATION}/{UUID(int=3)}/1"
    store.objects[other] = ("text/plain", b"y")
    await bodies.forget_run(ORGANIZATION, RUN)
    assert list(store.objects) == [other]
    await bodies.forget_run(ORGANIZATION, RUN)  # nothing to remove is no fault


async def test_a_store_that_removes_nothing_ends_the_removal(store: ObjectStore, bodies: SupabaseBodies) -> None:
    store.objects[f"{ORGANIZATION}/{RUN}/1"] = ("text/plain", b"x")
    answer = store.answer
    store.answer = lambda method, *rest: (  # type: ignore[method-assign]
        (200, "application/json", b"[]") if method == "DELETE" else answer(method, *rest)
    )
    with pytest.raises(BodiesUnavailable, match="removed nothing"):
        await bodies.forget_run(ORGANIZATION, RUN)


@pytest.mark.guarantee("J4")
async def test_when_the_upload_fails_the_row_keeps_the_bytes_and_the_log_says_so(
    store: ObjectStore, bodies: SupabaseBodies, caplog: pytest.LogCaptureFixture
) -> None:
    store.busy = [503, 503]
    kept = record(b"Bearer hidden")
    keeper = ElsewhereOrInTheRow(bodies=bodies)
    with caplog.at_level(logging.WARNING):
        assert await keeper.keep(kept, organization_id=ORGANIZATION, run_id=RUN) is kept
    assert f"artifact {kept.id} is kept in its row" in caplog.text
    assert "status 503" in caplog.text
    assert KEY not in caplog.text
    assert "hidden" not in caplog.text


@pytest.mark.guarantee("J4")
async def test_a_store_that_never_answers_costs_no_more_than_its_time(
    store: ObjectStore, bodies: SupabaseBodies
) -> None:
    store.silent = True
    kept = record()
    keeper = ElsewhereOrInTheRow(bodies=bodies, timeout_s=0.05)
    assert await keeper.keep(kept, organization_id=ORGANIZATION, run_id=RUN) is kept


async def test_a_process_is_told_of_the_store_by_its_environment(store: ObjectStore) -> None:
    async with object_store_of({}) as none:
        assert none is None
    told = {"AGENTIC_ARTIFACTS_URL": store.url, "AGENTIC_ARTIFACTS_KEY": KEY, "AGENTIC_ARTIFACTS_BUCKET": BUCKET}
    async with object_store_of(told) as bodies:
        assert bodies is not None
        assert (await put(bodies, record())).body is None
    with pytest.raises(ProgramFault, match="AGENTIC_ARTIFACTS_KEY is not"):
        async with object_store_of({"AGENTIC_ARTIFACTS_URL": store.url}):
            pass


@pytest.mark.parametrize("url", ["http://store.example", "ftp://127.0.0.1", "store.example"])
def test_a_key_is_sent_over_tls_alone(url: str) -> None:
    with pytest.raises(ProgramFault, match="https"):
        SupabaseBodies(url=url, key=KEY)


@pytest.mark.parametrize("bucket", ["", "a/b", "a?b", "ä"])
def test_a_bucket_has_a_name_that_is_one_part_of_a_path(bucket: str) -> None:
    with pytest.raises(ProgramFault, match="bucket"):
        SupabaseBodies(url="https://store.example", key=KEY, bucket=bucket)
