"""What is left out of an answer, and what a handler saves: kept once, in one place, under the label of the answer."""

import hashlib
import json
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any
from uuid import UUID, uuid4

import pytest

from agentic.contract.errors import NotFound, ProgramFault
from agentic.contract.trust import Trust
from agentic.runtime.agent.script import Turn
from agentic.services.artifacts.models import Artifact
from agentic.services.artifacts.ports import ArtifactBodies, BodiesUnavailable
from agentic.services.tools.context import CallContext
from agentic.services.tools.handlers.errors import RetryableUpstreamError
from agentic.services.tools.records import ArtifactRecord
from agentic.storage.artifact_store import PostgresArtifactRows, PostgresBodies
from agentic.storage.supabase_object_store import SupabaseBodies
from agentic.testing import Call, Calls, Harness, Say, harness
from core_world import Done, World, execute, journal, rows
from object_store import BUCKET, KEY, ObjectStore, object_store

SAVE = Calls([Call("notes.save", {"text": "milk"})])
LOOK = Calls([Call("crm.search", {"text": "milk"})])
LONG = "line\n" * 20_000
"""100,000 bytes: more than a model reads, less than is captured."""


async def artifacts(h: Harness) -> list[dict[str, Any]]:
    return await rows(h, "select * from agent.artifacts order by media_type, created_at")


async def told(h: Harness, run_id: UUID) -> list[dict[str, Any]]:
    """What the model read, call by call."""
    return [json.loads(text.split("\n")[0]) for role, text in await h.messages(run_id) if role == "tool"]


async def long_answer(_ctx: CallContext, _args: Any) -> Any:
    return Done(id=LONG)


@asynccontextmanager
async def an_object_store() -> AsyncIterator[tuple[ObjectStore, SupabaseBodies]]:
    async with object_store() as store, SupabaseBodies(url=store.url, key=KEY, bucket=BUCKET) as bodies:
        yield store, bodies


@pytest.mark.guarantee("B1")
@pytest.mark.parametrize("kind", ["read", "write"])
async def test_what_was_left_out_is_kept_once_and_the_note_in_the_answer_names_it(database: str, kind: str) -> None:
    world = World()
    tool = world.read(does=long_answer) if kind == "read" else world.write(does=long_answer)
    turn = LOOK if kind == "read" else SAVE
    async with harness(tools=[tool], script=[turn, Say("Done.")], database_url=database) as h:
        run_id = await h.start()
        assert (await h.settle(run_id)).state == "succeeded"
        [row] = await artifacts(h)
        whole = json.dumps({"id": LONG}, separators=(",", ":")).encode()
        assert bytes(row["body"]) == whole
        assert (row["sha256"], row["size_bytes"]) == (hashlib.sha256(whole).hexdigest(), len(whole))
        assert (row["complete"], row["trust"], row["place"], row["media_type"]) == (
            True,
            "internal",
            None,
            "application/json",
        )
        [span] = await h.calls(run_id)
        assert (row["span_id"], row["run_id"]) == (span["id"], run_id)
        [answer] = await told(h, run_id)
        assert answer["meta"]["truncated"] is True
        assert f"bytes left out, kept as artifact {row['id']}" in answer["data"]["id"]
        if kind == "write":
            [claim] = await journal(h, run_id)
            assert claim["artifact_id"] == row["id"]
        kept = await h.platform.artifacts.read(h.organization_id, row["id"])
        assert kept.body == whole
        with pytest.raises(NotFound):
            await h.platform.artifacts.read(uuid4(), row["id"])


async def test_an_operator_lowers_how_much_a_model_reads_and_a_tools_own_bound_below_it_wins(database: str) -> None:
    world = World()
    tools = [
        world.read("crm.wide", does=long_answer),
        world.read("crm.tight", does=long_answer, max_output_bytes=400),
        world.read("crm.large", does=long_answer, max_output_bytes=20_000),
    ]
    script: list[Turn] = [Calls([Call(tool.spec.name, {"text": "a"}) for tool in tools]), Say("Done.")]
    async with harness(tools=tools, script=script, database_url=database, max_output_bytes=2_000) as h:
        run_id = await h.start()
        assert (await h.settle(run_id)).state == "succeeded"
        sizes = [len(json.dumps(a["data"], separators=(",", ":"))) for a in await told(h, run_id)]
        assert all(1_500 < size <= 2_000 for size in (sizes[0], sizes[2]))
        assert 300 < sizes[1] <= 400
    with pytest.raises(ProgramFault, match="use 1024 to 32768"):
        async with harness(tools=tools, script=script, database_url=database, max_output_bytes=1_023):
            pass


async def test_what_a_handler_saves_is_stored_with_its_answer_and_not_by_an_attempt_that_was_repeated(
    database: str,
) -> None:
    world = World()
    ids: list[UUID] = []

    async def report(ctx: CallContext, _args: Any) -> Any:
        ctx.secrets = ("tok_live_0123456789",)
        ids.append(ctx.save_artifact(f"try {len(ids)} tok_live_0123456789".encode(), "text/csv"))
        if len(ids) == 1:
            raise RetryableUpstreamError("throttled")
        ctx.save_artifact(b"\x00\xff", "application/octet-stream")
        ctx.lower_trust(Trust.EXTERNAL)
        return Done(id=str(ids[-1]))

    async with harness(tools=[world.write(does=report)], script=[SAVE, SAVE, Say("x")], database_url=database) as h:
        run_id = await h.start()
        assert (await h.settle(run_id)).state == "succeeded"
        stored = await artifacts(h)
        assert [bytes(row["body"]) for row in stored] == [b"\x00\xff", b"try 1 [redacted]"]
        assert stored[1]["id"] == ids[1]
        assert {row["trust"] for row in stored} == {"external"}
        answer = (await told(h, run_id))[-1]
        assert answer["external"]["data"] == {"id": str(ids[1])}
        [claim] = await journal(h, run_id)
        assert claim["artifact_id"] is None  # the answer itself is whole


@pytest.mark.guarantee("J4")
@pytest.mark.parametrize("kind", ["read", "write"])
async def test_with_an_object_store_the_bytes_are_there_and_the_row_names_the_place(database: str, kind: str) -> None:
    world = World()
    tool = world.read(does=long_answer) if kind == "read" else world.write(does=long_answer)
    turn = LOOK if kind == "read" else SAVE
    async with an_object_store() as (store, bodies):
        given: dict[str, Any] = {"database_url": database, "artifact_bodies": bodies}
        async with harness(tools=[tool], script=[turn, Say("x")], **given) as h:
            run_id = await h.start()
            assert (await h.settle(run_id)).state == "succeeded"
            [row] = await artifacts(h)
            path = f"{h.organization_id}/{run_id}/{row['id']}"
            assert (row["body"], row["place"]) == (None, f"{BUCKET}/{path}")
            assert list(store.objects) == [path]
            kept = await h.platform.artifacts.read(h.organization_id, row["id"])
            assert json.loads(kept.body) == {"id": LONG}

            store.busy = [503, 503]
            with pytest.raises(BodiesUnavailable):
                await h.platform.artifacts.read(h.organization_id, row["id"])
            store.objects[path] = ("application/json", b"tampered")
            with pytest.raises(ProgramFault, match="not those that were kept"):
                await h.platform.artifacts.read(h.organization_id, row["id"])
            store.objects.clear()
            with pytest.raises(NotFound):
                await h.platform.artifacts.read(h.organization_id, row["id"])


@pytest.mark.guarantee("J4")
async def test_when_the_object_store_is_away_the_call_still_completes_and_the_row_keeps_the_bytes(
    database: str, caplog: pytest.LogCaptureFixture
) -> None:
    world = World()
    async with an_object_store() as (store, bodies):
        store.busy = [503, 503]
        given: dict[str, Any] = {"database_url": database, "artifact_bodies": bodies}
        async with harness(tools=[world.write(does=long_answer)], script=[SAVE, Say("x")], **given) as h:
            run_id = await h.start()
            assert (await h.settle(run_id)).state == "succeeded"
            [row] = await artifacts(h)
            assert row["place"] is None
            assert (await h.platform.artifacts.read(h.organization_id, row["id"])).artifact.size_bytes > 100_000
            assert len(world.effects) == 1
    assert "is kept in its row" in caplog.text


async def test_artifacts_go_with_ended_runs_whose_time_is_over_the_unnamed_bytes_too(database: str) -> None:
    world = World()
    async with an_object_store() as (store, bodies):
        given: dict[str, Any] = {"database_url": database, "artifact_bodies": bodies}
        script: list[Turn] = [SAVE, Say("x")]
        async with harness(tools=[world.write(does=long_answer)], script=script, **given) as h:
            old, young = await h.start(), await h.start()
            for run_id in (old, young):
                assert (await h.settle(run_id)).state == "succeeded"
            orphan = f"{h.organization_id}/{old}/{uuid4()}"
            store.objects[orphan] = ("text/plain", b"its worker died before the commit")
            await execute(h, "alter table agent.artifacts disable trigger artifacts_immutable")
            await execute(
                h,
                "update agent.artifacts set created_at = created_at - interval '400 days' where run_id = %(id)s",
                id=old,
            )
            store.busy = [503, 503]
            assert await h.platform.sweeper.runs() == 0
            assert len(await artifacts(h)) == 2  # the store was away: the rows still name what is to go
            assert await h.platform.sweeper.runs() == 1
            [left] = await artifacts(h)
            assert left["run_id"] == young
            assert list(store.objects) == [f"{h.organization_id}/{young}/{left['id']}"]
            assert await h.platform.sweeper.runs() == 0


class Died(BaseException):
    """The process is gone."""


class DiesAfterTheUpload:
    """An object store whose caller dies once, between the upload and the commit that would have named it."""

    def __init__(self, bodies: ArtifactBodies) -> None:
        self._bodies = bodies
        self.alive = False

    async def put(self, record: ArtifactRecord, *, organization_id: UUID, run_id: UUID) -> ArtifactRecord:
        put = await self._bodies.put(record, organization_id=organization_id, run_id=run_id)
        if not self.alive:
            self.alive = True
            raise Died
        return put

    async def get(self, artifact: Artifact) -> bytes | None:
        return await self._bodies.get(artifact)

    async def forget_run(self, organization_id: UUID, run_id: UUID) -> None:
        await self._bodies.forget_run(organization_id, run_id)


@pytest.mark.guarantee("J4")
async def test_a_death_between_upload_and_commit_leaves_bytes_without_a_name_and_the_next_worker_its_own(
    database: str,
) -> None:
    world = World()
    tool = world.write(does=long_answer, idempotency="idempotent")
    async with an_object_store() as (store, bodies):
        given: dict[str, Any] = {"database_url": database, "artifact_bodies": DiesAfterTheUpload(bodies)}
        async with harness(tools=[tool], script=[SAVE, Say("Done.")], **given) as h:
            run_id = await h.start()
            with pytest.raises(Died):
                await h.advance(run_id)
            assert await artifacts(h) == []
            assert len(store.objects) == 1
            past = "lease_expires_at = clock_timestamp() - interval '1 second'"
            await execute(h, f"update agent.runs set {past} where id = %(id)s", id=run_id)
            await execute(h, f"update agent.idempotency_keys set {past}")
            assert (await h.settle(run_id)).state == "succeeded"
            [row] = await artifacts(h)
            assert len(store.objects) == 2
            kept = await h.platform.artifacts.read(h.organization_id, row["id"])
            assert json.loads(kept.body) == {"id": LONG}


class TestEveryPlace:
    """What both adapters keep to."""

    @pytest.fixture(params=["row", "object store"])
    async def place(
        self, request: pytest.FixtureRequest, database: str
    ) -> AsyncIterator[tuple[ArtifactBodies, Callable[[ArtifactRecord], Any]]]:
        async with AsyncExitStack() as stack:
            h = await stack.enter_async_context(
                harness(tools=[World().read()], script=[Say("x")], database_url=database)
            )
            run_id = await h.start()
            bodies: ArtifactBodies
            if request.param == "row":
                bodies = PostgresBodies(h.platform.database)
            else:
                _, bodies = await stack.enter_async_context(an_object_store())

            async def commit(record: ArtifactRecord) -> Artifact:
                put = await bodies.put(record, organization_id=h.organization_id, run_id=run_id)
                await execute(
                    h,
                    "insert into agent.artifacts (id, organization_id, run_id, span_id, media_type, trust, sha256, size_bytes, "
                    "complete, place, body) values (%(id)s, %(org)s, %(run)s, %(span)s, %(media)s, 'internal', %(sha)s, %(size)s, "
                    "true, %(place)s, %(body)s) on conflict (id) do nothing",
                    id=put.id,
                    org=h.organization_id,
                    run=run_id,
                    span=put.span_id,
                    media=put.media_type,
                    sha=put.sha256,
                    size=put.size_bytes,
                    place=put.place,
                    body=put.body,
                )
                found = await PostgresArtifactRows(h.platform.database).read(h.organization_id, put.id)
                assert found is not None
                return found

            yield bodies, commit

    async def test_what_was_kept_is_read_back_byte_for_byte_however_often_it_was_put(self, place: Any) -> None:
        bodies, commit = place
        for body in (b"", b"\x00\xff" * 50_000, "é".encode()):
            record = ArtifactRecord(id=uuid4(), span_id=uuid4(), trust=Trust.INTERNAL, body=body, complete=True)
            first, again = await commit(record), await commit(record)
            assert first == again
            assert await bodies.get(first) == body
            assert first.sha256 == hashlib.sha256(body).hexdigest()

    async def test_bytes_nobody_kept_are_gone_not_empty(self, place: Any) -> None:
        bodies, commit = place
        record = ArtifactRecord(id=uuid4(), span_id=uuid4(), trust=Trust.INTERNAL, body=b"x", complete=True)
        kept = await commit(record)
        other = uuid4()
        missing = kept.model_copy(update={"id": other})
        if missing.place is not None:
            missing = missing.model_copy(update={"place": missing.place.replace(str(kept.id), str(other))})
        assert await bodies.get(missing) is None

    async def test_forgetting_a_run_twice_is_no_fault(self, place: Any) -> None:
        bodies, _ = place
        for _ in range(2):
            await bodies.forget_run(uuid4(), uuid4())
