"""The command line as a person has it: a process of its own, over a real database with a run that waits."""

import asyncio
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from uuid import UUID, uuid4

import pytest
from pydantic import BaseModel

from agentic.bootstrap import App, open_platform
from agentic.contract.events import Event
from agentic.contract.principal import Principal, Role
from agentic.runtime.agent.agno.scripted import ScriptedModel
from agentic.runtime.agent.definition import AgentDefinition
from agentic.runtime.agent.script import Call, Calls, Say
from agentic.services.approvals.models import Verdict
from agentic.services.connections.fixed import FixedConnections
from agentic.services.tools.context import CallContext
from agentic.services.tools.declarations import vendor_tool
from warm_commands import COMMANDS
from warm_processes import Ended, Warm

COMMAND_S = 50
PROGRAM = [sys.executable, "-c", "from agentic.cli import main; main()"]


@dataclass
class Shell:
    """Runs commands in a folder, with nothing of the tester's own environment that could steer them."""

    folder: Path
    warm: Warm
    variables: dict[str, str] = field(default_factory=dict)

    def environment(self, **variables: str) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if name in ("PATH", "HOME", "LANG", "TMPDIR")}
        return {**kept, **self.variables, **variables}

    def __call__(self, *arguments: str, typed: str | None = None, **variables: str) -> Ended:
        return self.warm.run(
            "agentic.cli:main",
            *arguments,
            folder=self.folder,
            environment=self.environment(**variables),
            typed=typed,
            timeout_s=COMMAND_S,
        )

    def cold(self, *arguments: str, **variables: str) -> Ended:
        """As a call, from an interpreter that starts: for what it reads of the environment, and for what is imported when."""
        with self.start(*arguments, **variables) as process:
            out, err = process.communicate(timeout=COMMAND_S)
        return Ended(code=process.returncode, out=out, err=err)

    def start(self, *arguments: str, **variables: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [*PROGRAM, *arguments],
            cwd=self.folder,
            env=self.environment(**variables),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )


class Letter(BaseModel):
    to: str


class Posted(BaseModel):
    id: str


class SilentBus:
    async def send(self, events: Sequence[Event]) -> None:
        """Nobody listens, and nobody complains."""


@dataclass(frozen=True, kw_only=True)
class Seed:
    """What the database holds."""

    organization: UUID
    approver: UUID
    operator: UUID
    run: str
    """Waits for a person."""
    approval: str
    unknown: str
    """A run whose letter may have left."""


@pytest.fixture(scope="session")
def warm() -> Iterator[Warm]:
    """Forks the commands of this test run."""
    processes = Warm(*COMMANDS)
    yield processes
    processes.close()


@pytest.fixture
def shell(tmp_path: Path, warm: Warm) -> Shell:
    return Shell(tmp_path, warm)


@pytest.fixture
def seed(database: str, shell: Shell) -> Seed:
    with ThreadPoolExecutor(1) as thread:
        seeded = thread.submit(asyncio.run, _seed(database)).result(timeout=COMMAND_S)
    shell.variables.update(DATABASE_URL=database, AGENTIC_ORGANIZATION=str(seeded.organization))
    return seeded


async def _seed(database: str) -> Seed:
    dead: list[Callable[[], Exception]] = []

    @vendor_tool(
        "letters.post",
        "Post a letter.",
        side_effects="send",
        repeatable=False,
        connection="post",
        may_repeat_because="a second letter does no harm here",
    )
    async def post(ctx: CallContext, args: Letter) -> Posted:
        for fault in dead:
            raise fault()
        return Posted(id="letter-1")

    definition = AgentDefinition(name="scribe", instructions="Write.", model="script", tools=("letters.post",))
    script: list[Say | Calls] = [Calls([Call("letters.post", {"to": "Åse \u202e<per@fjord.example>"})]), Say("done")]
    app = App(
        tools=[post],
        agents=[definition],
        models={"script": lambda: ScriptedModel(script=script)},
        connections=FixedConnections(),
    )
    organization, approver, operator = uuid4(), uuid4(), uuid4()
    async with open_platform(app, database, bus=SilentBus()) as platform:
        await platform.approval_store.put_member(organization, approver, Role.APPROVER)
        await platform.approval_store.put_member(organization, operator, Role.OPERATOR)
        principal = Principal(organization_id=organization, user_id=approver)

        async def waiting(key: str) -> tuple[UUID, UUID]:
            run = (await platform.runs.start(definition, "write", principal=principal, request_key=key)).run_id
            await platform.leader.advance(organization, run)
            return run, (await platform.approvals.find(organization, run_id=run))[0].id

        unknown, given = await waiting("first")
        await platform.approvals.decide(organization, given, user_id=approver, verdict=Verdict.APPROVED)
        dead.append(lambda: ConnectionResetError("the line went dead"))
        await platform.leader.advance(organization, unknown)
        run, approval = await waiting("second")
    return Seed(
        organization=organization,
        approver=approver,
        operator=operator,
        run=str(run),
        approval=str(approval),
        unknown=str(unknown),
    )
