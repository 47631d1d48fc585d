"""Workers serve an app's own functions beside the package's, and an embedded engine calls them."""

from pathlib import Path
from typing import Any, cast
from uuid import uuid4

import inngest
import pytest

from agentic.bootstrap import App, function_ports
from agentic.contract.errors import ProgramFault
from agentic.functions.serve import all_functions
from agentic.local.worker import WorkerProcess, WorkerSettings
from agentic.runtime.workflow import Workflows
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


@pytest.mark.parametrize(
    ("ids", "says"),
    [
        (("run.advance",), "product-run.advance"),
        (("mine", "mine"), "product-mine"),
        (("mine", "mine-failure"), "product-mine-failure"),
        (None, "returns a list"),
    ],
)
async def test_a_function_that_would_take_the_place_of_another_is_refused_by_name(
    database: str, ids: tuple[str, ...] | None, says: str
) -> None:
    async def given_up(ctx: inngest.Context) -> None:
        """What on_failure gets."""

    def functions(client: inngest.Inngest, workflows: Workflows) -> list[inngest.Function[Any]]:
        @client.create_function(fn_id="other", trigger=inngest.TriggerEvent(event="other"), on_failure=given_up)
        async def other(ctx: inngest.Context) -> None:
            """Has an id of its own."""

        made = [other]
        for fn_id in ids or ():

            @client.create_function(fn_id=fn_id, trigger=inngest.TriggerEvent(event="x"), on_failure=given_up)
            async def function(ctx: inngest.Context) -> None:
                """Has an id that another has."""

            made.append(function)
        return made if ids else cast("list[inngest.Function[Any]]", None)

    async with stage(database, App(functions=functions), serve=False) as s:
        with pytest.raises(ProgramFault, match=says):
            all_functions(s.client, function_ports(s.platform))
