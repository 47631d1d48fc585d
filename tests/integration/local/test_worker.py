"""A worker's process: ready when the function server knows it, gone when asked, when killed, and when its starter is gone."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from agentic.local.engine import FunctionEngine
from agentic.local.worker import WorkerFailed, WorkerProcess, WorkerSettings

pytestmark = pytest.mark.timeout(180)
APP = "agentic.local.demo.app:worker_app"
EMPTY = "empty_app:app"
_PATIENCE_S = 60


@pytest.fixture
def empty_app(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Import path, for child processes, of an app without tools."""
    (tmp_path / "empty_app.py").write_text("from agentic.bootstrap import App\napp = App()\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    return EMPTY


@pytest.fixture
async def engine(database: str) -> AsyncIterator[FunctionEngine]:
    engine = FunctionEngine(dsn=database)
    await engine.start()
    yield engine
    await engine.stop(grace_s=1)


async def test_a_worker_registers_and_ends_with_status_0_when_asked(
    empty_app: str, engine: FunctionEngine, database: str, tmp_path: Path
) -> None:
    log = tmp_path / "logs" / "worker.log"
    worker = await WorkerProcess.prepare(empty_app)
    await worker.begin(
        name="worker 1",
        database_url=database,
        settings=WorkerSettings(app_id="tested", drain_s=1),
        log=log,
        environment={"INNGEST_DEV": engine.url},
    )
    assert worker.url.endswith("/api/inngest")
    assert worker.running
    os.kill(worker.pid, signal.SIGTERM)
    assert await worker.wait() == 0
    assert "Finished server process" in log.read_text()


async def test_an_app_that_cannot_be_opened_is_said_in_one_sentence(database: str, tmp_path: Path) -> None:
    worker = await WorkerProcess.prepare(APP)
    with pytest.raises(WorkerFailed, match="worker 1 cannot start: AGENTIC_DEMO_SETTINGS is not set"):
        await worker.begin(
            name="worker 1",
            database_url=database,
            settings=WorkerSettings(),
            log=tmp_path / "worker.log",
            environment={"INNGEST_DEV": "http://127.0.0.1:9"},
        )
    assert not worker.running


async def test_a_worker_that_dies_early_is_reported_with_what_it_said(database: str, tmp_path: Path) -> None:
    worker = await WorkerProcess.prepare("no_such_module_here:app")
    with pytest.raises(WorkerFailed, match="No module named 'no_such_module_here'"):
        await worker.begin(
            name="worker 1", database_url=database, settings=WorkerSettings(), log=tmp_path / "worker.log"
        )


async def test_a_worker_that_stands_by_is_gone_when_its_starter_was_killed() -> None:
    starter = """
import asyncio, sys
from agentic.local.worker import WorkerProcess
async def main():
    worker = await WorkerProcess.prepare("agentic.local.demo.app:worker_app")
    print(worker.pid, flush=True)
    await asyncio.Event().wait()
asyncio.run(main())
"""
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", starter, stdout=asyncio.subprocess.PIPE)
    assert process.stdout is not None
    pid = int(await process.stdout.readline())
    process.kill()
    await process.wait()
    async with asyncio.timeout(_PATIENCE_S):
        while _alive(pid):  # noqa: ASYNC110 - nobody tells of another session's processes
            await asyncio.sleep(0.05)


def _alive(pid: int) -> bool:
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
