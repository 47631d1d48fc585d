"""``agentic runs``: starting a run of an app, finding runs again, and stopping one with a reason."""

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING
from uuid import UUID

import pytest

from agentic.bootstrap import App, open_platform
from agentic.contract.events import Event
from agentic.contract.principal import Principal
from agentic.runtime.agent.agno.scripted import ScriptedModel
from agentic.runtime.agent.definition import AgentDefinition
from agentic.runtime.agent.script import Say

if TYPE_CHECKING:
    from tests.integration.cli.conftest import Seed, Shell

pytestmark = pytest.mark.timeout(300)  # each command is a process of its own

APP = """
from agentic.bootstrap import App
from agentic.runtime.agent.agno.scripted import ScriptedModel
from agentic.runtime.agent.definition import AgentDefinition
from agentic.runtime.agent.script import Say

app = App(
    agents=[AgentDefinition(name="clerk", instructions="Answer.", model="script")],
    models={"script": lambda: ScriptedModel(script=[Say("done")])},
)
"""


def test_a_run_of_an_app_is_started_once_per_key_and_found_again(seed: "Seed", shell: "Shell") -> None:
    (shell.folder / "office.py").write_text(APP)
    command = ["runs", "start", "clerk", "count the letters", "--app", "office:app", "--as", str(seed.approver)]
    bounds = ["--request-key", "k", "--session", "monday", "--lane", "batch"]
    started = shell(*command, *bounds, "--json")
    assert (started.code, started.value["created"]) == (0, True), started.err
    run = started.value["run"]
    assert (run["state"], run["lane"], run["session_id"]) == ("queued", "batch", "monday")
    again = shell(*command, *bounds, "--json").value
    assert (again["created"], again["run"]["id"]) == (False, run["id"])
    other = shell(*command, "--request-key", "k")
    assert (other.code, "another input" in other.err) == (1, True)
    unknown = shell("runs", "start", "nobody", "x", "--app", "office:app")
    assert (unknown.code, "no agent 'nobody'" in unknown.err) == (1, True)
    assert shell(*command, "--lane", "fast").code == 2
    found = shell("runs", "list", "--session", "monday", "--state", "queued", "--json").value
    assert [each["id"] for each in found] == [run["id"]]
    assert shell("runs", "cancel", run["id"], "--reason", "counted already").code == 0
    assert shell("runs", "show", run["id"], "--json").value["run"]["cancel_reason"] == "counted already"


class SilentBus:
    async def send(self, events: Sequence[Event]) -> None:
        """Nobody listens, and nobody complains."""


async def lead_with_a_child(database: str, organization: UUID, run: UUID, person: UUID) -> UUID:
    """Start a child of the run, and lead the run to its end."""
    clerk = AgentDefinition(name="clerk", instructions="Answer.", model="script")
    app = App(agents=[clerk], models={"script": lambda: ScriptedModel(script=[Say("seven letters")])})
    async with open_platform(app, database, bus=SilentBus()) as platform:
        principal = Principal(organization_id=organization, user_id=person)
        child = await platform.runs.start("clerk", "help", principal=principal, request_key="below", parent=run)
        assert (await platform.leader.advance(organization, run)).state == "succeeded"
    return child.run_id


def test_waiting_for_a_run_prints_its_answer_and_its_tree_shows_whom_it_started(
    seed: "Seed", shell: "Shell", database: str
) -> None:
    (shell.folder / "office.py").write_text(APP)
    command = ["runs", "start", "clerk", "count", "--app", "office:app", "--as", str(seed.approver)]
    bounds = ["--request-key", "k", "--session", "monday"]
    run = UUID(shell(*command, *bounds, "--json").value["run"]["id"])
    with ThreadPoolExecutor(1) as thread:
        led = lead_with_a_child(database, seed.organization, run, seed.approver)
        child = thread.submit(asyncio.run, led).result(timeout=50)
    over = shell(*command, *bounds, "--wait")
    assert (over.code, over.out) == (0, "seven letters\n")
    assert shell("runs", "cancel", str(run), "--reason", "enough").code == 0
    shown = shell("runs", "show", str(run)).out
    assert "session: monday" in shown
    assert str(child) in shown
    below = shell("runs", "show", str(child)).out
    assert f"started by: {run}" in below
    assert "enough" in below


def test_runs_are_listed_page_by_page(seed: "Seed", shell: "Shell") -> None:
    first = shell("runs", "list", "--limit", "1", "--json")
    assert [run["id"] for run in first.value] == [seed.run]
    cursor = first.err.rsplit(" ", 1)[-1].strip()
    second = shell("runs", "list", "--limit", "1", "--cursor", cursor, "--json")
    assert ([run["id"] for run in second.value], second.err) == ([seed.unknown], "")
    assert [run["id"] for run in shell("runs", "list", "--state", "parked", "--json").value] == [seed.run]
    assert shell("runs", "list", "--before", "2001-01-01", "--json").value == []
    assert shell("runs", "list", "--root", seed.run, "--json").value[0]["id"] == seed.run
    assert shell("runs", "list", "--state", "lost").code == 2
    assert shell("runs", "list", "--cursor", "x").code == 2
