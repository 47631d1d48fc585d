"""Workers serve an app's own functions beside the package's, and an embedded engine calls them."""

from pathlib import Path
from uuid import uuid4

import inngest
import pytest

from agentic.local.worker import WorkerProcess, WorkerSettings
from examples.lead_workflow import app
from workflow_stage import stage

pytestmark = pytest.mark.timeout(180)
ROOT = Path(__file__).parents[3]


async def test_a_worker_serves_the_example_and_its_run_is_there_to_be_seen(
    database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT), prepend=":")
    async with stage(database, app, serve=False) as s:
        worker = await WorkerProcess.prepare("examples.lead_workflow:app")
        try:
            await worker.begin(
                name="worker 1",
                database_url=database,
                settings=WorkerSettings(drain_s=1),
                log=tmp_path / "worker.log",
                environment={"INNGEST_DEV": s.engine.url},
            )
            data = {"organization_id": str(s.organization_id), "user_id": str(s.user_id)}
            lead = inngest.Event(
                name="leads/arrived", id=str(uuid4()), data={**data, "company": "Tiny", "email": "ada@tiny.test"}
            )
            await s.client.send(lead)

            async def ended() -> bool:
                return any(run.status == "completed" for run in await s.engine.runs("agentic-leads"))

            await s.until(ended)
        finally:
            await worker.stop()
        (container, *_) = await s.runs()
        tree = await s.platform.runs.tree(s.organization_id, container["id"])
        assert tree.run["state"] == "succeeded"
        assert tree.run["definition_name"] == "workflow:leads"
