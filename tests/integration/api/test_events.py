"""What happens to a run over HTTP: a list, or a stream that goes on where its reader left off and gives everything back."""

import asyncio
import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from uuid import UUID, uuid4

import pytest

from agentic.api.app import create_api
from agentic.api.auth import JwtAuthenticator
from agentic.api.events import StreamLimits
from agentic.bootstrap import api_ports
from agentic.contract.principal import Role
from agentic.services.runs.following import Pace
from tests.integration.api.conftest import SECRET

if TYPE_CHECKING:
    from tests.integration.api.conftest import Stage

LIST = {"Accept": "application/json"}
STREAM = {"Accept": "text/event-stream"}
QUICK = Pace(first_s=0.01, most_s=0.01, parked_s=0.01)


async def ended(stage: "Stage", user: UUID) -> str:
    run, approval = await stage.waiting(user)
    async with stage.as_(user) as http:
        await http.post(f"/v1/approvals/{approval}/approve")
        assert await stage.lead(run) == "succeeded"
    return run


def frames(body: str) -> list[dict[str, str]]:
    """The events of a stream, without its comments."""
    parsed = [dict(line.split(": ", 1) for line in frame.splitlines()) for frame in body.split("\n\n") if frame]
    return [frame for frame in parsed if "event" in frame]


async def test_a_stream_tells_all_of_a_run_that_is_over_and_ends(stage: "Stage") -> None:
    user = await stage.person(Role.APPROVER)
    run = await ended(stage, user)
    async with stage.as_(user) as http:
        answer = await http.get(f"/v1/runs/{run}/events", headers=STREAM)
        listed = (await http.get(f"/v1/runs/{run}/events", headers=LIST)).json()
    assert answer.headers["content-type"].startswith("text/event-stream")
    assert answer.headers["cache-control"] == "no-store"
    *told, end = frames(answer.text)
    assert (end["event"], json.loads(end["data"]), "id" in end) == ("end", {"state": "succeeded"}, False)
    assert [int(frame["id"]) for frame in told] == list(range(1, len(told) + 1))
    assert [json.loads(frame["data"]) for frame in told] == listed["events"]
    assert [frame["event"] for frame in told][-1] == "run.succeeded"
    assert (listed["next"], listed["over"], listed["state"]) == (len(told), True, "succeeded")


async def test_a_reader_goes_on_behind_what_it_saw_last_by_header_before_address(stage: "Stage") -> None:
    user = await stage.person(Role.APPROVER)
    run = await ended(stage, user)
    async with stage.as_(user) as http:
        path = f"/v1/runs/{run}/events"
        last = (await http.get(path, headers=LIST)).json()["next"]
        by_address = await http.get(path, params={"after": last - 2})
        assert [frame.get("id") for frame in frames(by_address.text)] == [str(last - 1), str(last), None]
        by_header = await http.get(path, params={"after": 1}, headers={"Last-Event-ID": str(last - 1)})
        assert [frame.get("id") for frame in frames(by_header.text)] == [str(last), None]
        seen_all = await http.get(path, headers={"Last-Event-ID": str(last)})
        assert [frame["event"] for frame in frames(seen_all.text)] == ["end"]
        page = (await http.get(path, params={"after": 2, "limit": 1}, headers=LIST)).json()
        assert ([event["seq"] for event in page["events"]], page["next"], page["over"]) == ([3], 3, False)


@pytest.mark.parametrize("last", ["x", "-1", str(2**63)])
async def test_a_number_that_cannot_be_is_refused(stage: "Stage", last: str) -> None:
    user = await stage.person(Role.MEMBER)
    async with stage.as_(user) as http:
        answer = await http.get(f"/v1/runs/{uuid4()}/events", headers={"Last-Event-ID": last})
        assert (answer.status_code, answer.json()["error"]["code"]) == (422, "invalid_request")


@pytest.mark.guarantee("T1")
async def test_a_stream_of_others_is_one_of_a_missing_run_and_takes_no_place(stage: "Stage") -> None:
    run = await ended(stage, await stage.person(Role.APPROVER))
    elsewhere = uuid4()
    async with stage.as_(await stage.person(Role.ADMIN, elsewhere), elsewhere) as http:
        for path in [run, str(uuid4())] * 5:
            answer = await http.get(f"/v1/runs/{path}/events", headers=STREAM)
            assert answer.status_code == 404
            assert answer.headers["content-type"] == "application/json"
    async with stage.client() as nobody:
        assert (await nobody.get(f"/v1/runs/{run}/events", headers=STREAM)).status_code == 401


class Reader:
    """Reads a stream while it comes, straight from the application; ``leave`` goes away in the middle."""

    def __init__(self, stage: "Stage", api: Any, run: str, user: UUID) -> None:
        self.text = ""
        self.status: int | None = None
        self._more = asyncio.Condition()
        self._gone = asyncio.Event()
        headers = [
            (b"authorization", f"Bearer {stage.token(user)}".encode()),
            (b"accept", b"text/event-stream"),
        ]
        scope = {
            "type": "http", "asgi": {"version": "3.0", "spec_version": "2.3"}, "http_version": "1.1", "method": "GET",
            "scheme": "http", "path": f"/v1/runs/{run}/events", "raw_path": b"", "query_string": b"", "root_path": "",
            "headers": headers, "client": ("127.0.0.1", 1), "server": ("api.test", 80), "state": {},
        }  # fmt: skip
        self.task = asyncio.create_task(api(scope, self._receive, self._send))

    async def until(self, holds: Callable[[], bool]) -> None:
        async with asyncio.timeout(20), self._more:
            await self._more.wait_for(holds)

    async def leave(self) -> None:
        self._gone.set()
        async with asyncio.timeout(20):
            await self.task

    async def _receive(self) -> dict[str, Any]:
        await self._gone.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: dict[str, Any]) -> None:
        async with self._more:
            self.status = message.get("status", self.status)
            self.text += message.get("body", b"").decode()
            self._more.notify_all()


Reads = Callable[[str, UUID], Reader]


def reads(stage: "Stage", **limits: Any) -> Reads:
    api = create_api(
        api_ports(stage.platform), JwtAuthenticator(SECRET), streams=StreamLimits(**{"pace": QUICK, **limits})
    )
    return lambda run, user: Reader(stage, api, run, user)


async def test_a_reader_sees_what_happens_while_it_reads(stage: "Stage") -> None:
    user = await stage.person(Role.APPROVER)
    run, approval = await stage.waiting(user)
    reader = reads(stage)(run, user)
    await reader.until(lambda: "run.parked" in reader.text)
    async with stage.as_(user) as http:
        await http.post(f"/v1/approvals/{approval}/reject", json={"comment": "not today"})
    await reader.until(lambda: "approval.rejected" in reader.text)
    await stage.lead(run)
    async with asyncio.timeout(20):
        await reader.task
    assert frames(reader.text)[-1]["event"] == "end"
    assert "not today" not in reader.text


async def test_a_person_has_a_bounded_number_of_streams_and_one_who_left_gives_the_place_back(stage: "Stage") -> None:
    user, other = await stage.person(Role.APPROVER), await stage.person(Role.MEMBER)
    run, _ = await stage.waiting(user)
    read = reads(stage, per_person=1)
    first = read(run, user)
    await first.until(lambda: "run.parked" in first.text)
    second = read(run, user)
    await second.task
    assert (second.status, "too_many_streams" in second.text) == (429, True)
    another = read(run, other)
    await another.until(lambda: "run.parked" in another.text)
    await first.leave()
    again = read(run, user)
    await again.until(lambda: "run.parked" in again.text)
    await asyncio.gather(again.leave(), another.leave())


async def test_a_process_has_a_bounded_number_of_streams(stage: "Stage") -> None:
    user, other = await stage.person(Role.APPROVER), await stage.person(Role.MEMBER)
    run, _ = await stage.waiting(user)
    read = reads(stage, in_all=1)
    first = read(run, user)
    await first.until(lambda: "run.parked" in first.text)
    second = read(run, other)
    await second.task
    assert second.status == 429
    await first.leave()


async def test_a_silent_stream_shows_that_it_is_alive(stage: "Stage") -> None:
    user = await stage.person(Role.APPROVER)
    run, _ = await stage.waiting(user)
    reader = reads(stage, heartbeat_s=0)(run, user)
    await reader.until(lambda: ": still here" in reader.text)
    await reader.leave()


async def test_a_stream_ends_after_its_time_and_its_reader_is_asked_anew_who_it_is(stage: "Stage") -> None:
    user = await stage.person(Role.APPROVER)
    run, _ = await stage.waiting(user)
    read = reads(stage, longest_s=0)
    reader = read(run, user)
    async with asyncio.timeout(20):
        await reader.task
    assert "run.parked" in reader.text
    assert "event: end" not in reader.text
    await stage.platform.database.count("delete from agent.members where user_id = %(user)s", {"user": user})
    later = read(run, user)
    await later.task
    assert later.status == 403


@pytest.mark.guarantee("W3")
async def test_open_streams_hold_no_connection_of_the_database(stage: "Stage") -> None:
    user = await stage.person(Role.APPROVER)
    run, _ = await stage.waiting(user)
    read = reads(stage, per_person=100, pace=Pace(first_s=3600, parked_s=3600))
    readers = [read(run, user) for _ in range(stage.platform.database.pool.max_size + 4)]
    for reader in readers:
        await reader.until(lambda reader=reader: "run.parked" in reader.text)  # type: ignore[misc]
    async with stage.as_(user) as http, asyncio.timeout(20):
        assert (await http.get(f"/v1/runs/{run}")).status_code == 200
    await asyncio.gather(*(reader.leave() for reader in readers))
