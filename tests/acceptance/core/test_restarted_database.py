"""Postgres is stopped at once, as by a crash, and started again: in the middle of a segment, and while a run is parked (J5, J3, D1)."""

import asyncio
import contextlib
import os
import signal
import tempfile
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest

from agentic.contract.errors import StorageUnavailable
from agentic.local.postgres import EmbeddedPostgres, bootstrap_supabase
from agentic.runtime.agent.script import Call, Calls, Say, Turn
from agentic.runtime.agent.timings import Timings
from agentic.services.tools.context import CallContext
from agentic.services.tools.declarations import Tool, internal_tool
from agentic.storage.migrations import migrate
from agentic.testing import EffectLedger, Harness, harness
from core_world import Done, Words

BOUND_S = 50
TIMINGS = Timings(lease_s=1.5, renew_s=0.5, fault_retry_s=0.05)


class Server:
    """A Postgres of this test alone."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._postgres = EmbeddedPostgres(root, settings={"fsync": "off", "full_page_writes": "off"})

    async def up(self) -> str:
        """Start it, through recovery if need be; its URL."""
        return await asyncio.to_thread(self._postgres.start)

    async def down(self) -> None:
        """Stop it at once: connections are cut, nothing is finished."""
        pid_file = self._root / "data" / "postmaster.pid"
        pid = int((await asyncio.to_thread(pid_file.read_text)).split()[0])
        os.kill(pid, signal.SIGQUIT)
        async with asyncio.timeout(BOUND_S):
            while await asyncio.to_thread(pid_file.exists):  # noqa: ASYNC110 - it is no child of this process
                await asyncio.sleep(0.02)

    async def again(self) -> None:
        """Down, and up."""
        await self.down()
        await self.up()

    def gone(self) -> None:
        """Stopped, with its data."""
        self._postgres.destroy()


@pytest.fixture
def server() -> Iterator[Server]:
    """A server that may be stopped; gone after the test."""
    folder = Path(tempfile.mkdtemp(prefix="agentic-test-"))
    folder.chmod(0o711)
    made = Server(folder / "postgres")
    yield made
    made.gone()
    folder.rmdir()


@pytest.fixture
async def url(server: Server) -> str:
    """Its migrated database."""
    url = await server.up()
    await asyncio.to_thread(bootstrap_supabase, url)
    await migrate(url)
    return url


def tool(
    world: EffectLedger, does: Callable[[], Awaitable[None]], *, cls: str, risk: str = "low", timeout_s: float = 20
) -> Tool:
    """A tool whose effect is followed, the first time, by what happens to the database."""
    extra = {"vendor_key_ttl_s": 3600} if cls == "conditional" else {}

    async def preview(ctx: CallContext, args: Words) -> str:
        return args.text

    @internal_tool(
        "act.do", "Acts.", side_effects="write", risk=risk, repeatable=False, idempotency=cls, timeout_s=timeout_s,
        approval_preview=True, preview=preview, **extra,
    )  # fmt: skip
    async def act(ctx: CallContext, args: Words) -> Done:
        first = world.record("visit", key="act")
        world.record("act", key=ctx.idempotency_key if cls == "conditional" else None)
        if first:
            await does()
        return Done(id="1")

    return act


SCRIPT: list[Turn] = [Calls([Call("act.do", {"text": "hello"}, reword=("text",))]), Say("Done.")]


async def led(h: Harness, run_id: object) -> None:
    """One segment, whatever the database does to it."""
    with contextlib.suppress(StorageUnavailable):
        await h.platform.leader.advance(h.organization_id, run_id)  # type: ignore[arg-type]


@pytest.mark.parametrize("cls", ["conditional", "non_idempotent"])
@pytest.mark.guarantee("J5", "J3")
async def test_a_database_that_restarts_while_a_call_is_made_costs_nothing(
    server: Server, url: str, tmp_path: Path, cls: str
) -> None:
    world = EffectLedger(tmp_path / "world")
    tools = [tool(world, server.again, cls=cls)]
    async with harness(tools=tools, script=SCRIPT, reword=True, database_url=url, timings=Timings()) as h:
        run_id = await h.start()
        assert await h.advance(run_id) == "succeeded"
        assert world.count("act") == 1
        [span] = await h.calls(run_id, "act.do")
        assert span["status"] == "ok"
        assert (await h.platform.audit.verify(h.organization_id, run_id)).whole


@pytest.mark.parametrize(("cls", "reason"), [("conditional", None), ("non_idempotent", "outcome_unknown: act.do")])
@pytest.mark.guarantee("J5", "J3")
async def test_a_database_that_is_away_for_longer_than_the_lease_leaves_what_a_dead_worker_leaves(
    server: Server, url: str, tmp_path: Path, cls: str, reason: str | None
) -> None:
    world, given_up = EffectLedger(tmp_path / "world"), asyncio.Event()

    async def away() -> None:
        await server.down()
        try:
            await asyncio.Event().wait()
        finally:  # the call's time is over, and the lease's, which could not be renewed
            given_up.set()

    tools = [tool(world, away, cls=cls, timeout_s=3)]
    async with harness(
        tools=tools, script=SCRIPT, reword=True, database_url=url, timings=TIMINGS, claim_grace_s=0.2
    ) as h:
        run_id = await h.start()
        leading = asyncio.create_task(led(h, run_id))
        async with asyncio.timeout(BOUND_S):
            await given_up.wait()
            await server.up()
            await leading
        settled = await h.settle(run_id, timeout_s=BOUND_S)
        assert (settled.state, settled.partial_reason) == ("succeeded", reason)
        assert world.count("act") == 1
        assert (await h.platform.audit.verify(h.organization_id, run_id)).whole


@pytest.mark.guarantee("A2", "D1")
async def test_a_parked_run_and_its_question_outlive_the_database_s_crash(
    server: Server, url: str, tmp_path: Path
) -> None:
    world = EffectLedger(tmp_path / "world")

    async def nothing() -> None:
        """The database is not touched while the call is made."""

    tools = [tool(world, nothing, cls="non_idempotent", risk="high")]
    async with harness(tools=tools, script=SCRIPT, reword=True, database_url=url, timings=TIMINGS) as h:
        run_id = await h.start()
        assert (await h.settle(run_id)).state == "parked"
        await server.again()
        assert len(await h.decide(run_id)) == 1
        await server.again()
        settled = await h.settle(run_id, timeout_s=BOUND_S)
        assert (settled.state, settled.partial_reason) == ("succeeded", None)
        assert world.count("act") == 1
        assert (await h.platform.audit.verify(h.organization_id, run_id)).whole
