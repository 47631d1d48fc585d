"""``agentic dev`` and ``agentic worker``: an app on one machine, from nothing to a finished run, whatever is killed meanwhile."""

import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import psutil
import psycopg
import pytest

from tests.integration.cli.conftest import Shell

pytestmark = pytest.mark.timeout(300)  # each command is a process of its own

APP = """
import os, time
from pathlib import Path
from pydantic import BaseModel
from agentic import AgentDefinition, App, CallContext, internal_tool
from agentic.runtime.agent.agno.scripted import ScriptedModel
from agentic.runtime.agent.script import Call, Calls, Say

class Note(BaseModel):
    text: str

class Saved(BaseModel):
    by: int

@internal_tool(
    "notes.save", "Save one note.", side_effects="write", risk="low", repeatable=False, idempotency="idempotent"
)
async def save_note(ctx: CallContext, args: Note) -> Saved:
    with Path("ledger").open("a") as ledger:
        ledger.write(f"{os.getpid()}\\n")
    return Saved(by=os.getpid())

app = App(
    tools=[save_note],
    agents=[AgentDefinition(name="scribe", instructions="Keep notes.", model="script", tools=("notes.save",))],
    models={"script": lambda: ScriptedModel(script=[Calls([Call("notes.save", {"text": "milk"})]), Say("Saved.")])},
)
"""
READY_S = 90


@pytest.fixture
def bare(shell: Shell, database: str) -> Shell:
    """A product's folder over an empty database."""
    (shell.folder / "product.py").write_text(APP)
    shell.variables.update(DATABASE_URL=database)
    return shell


@contextmanager
def developing(shell: Shell, *arguments: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The process and the API's address, once everything is up."""
    process = shell.start("dev", "--app", "product:app", "--port", "0", *arguments)
    assert process.stderr is not None
    assert process.stdout is not None
    said: list[str] = []
    try:
        while True:
            line = process.stderr.readline()
            assert line, "".join(said)
            said.append(line)
            if "at work" in line:
                break
        address = next(line.split()[4].removesuffix("/v1,") for line in said if line.startswith("the API is at"))
        yield process, address
    finally:
        process.terminate()
        process.wait(timeout=READY_S)
        process.stdout.close()
        process.stderr.close()


def workers_of(pid: int) -> list[psutil.Process]:
    return [
        child for child in psutil.Process(pid).children(recursive=True) if "agentic.local.worker" in child.cmdline()
    ]


def finished(http: httpx.Client, run_id: str) -> dict[str, Any]:
    """The run once it is over."""
    deadline = time.monotonic() + READY_S
    while True:
        run: dict[str, Any] = http.get(f"/v1/runs/{run_id}").json()["run"]
        if run["finished_at"] is not None or time.monotonic() > deadline:
            return run
        time.sleep(0.1)


def test_an_app_runs_from_nothing_and_survives_the_death_of_every_worker(bare: Shell) -> None:
    with developing(bare, "--workers", "2") as (process, address):
        headers = {"Authorization": f"Bearer {bare('token').out.strip()}"}
        with httpx.Client(base_url=address, trust_env=False, timeout=30, headers=headers) as http:
            assert http.get("/v1/runs", headers={"Authorization": "Bearer nonsense"}).status_code == 401
            for worker in workers_of(process.pid):
                os.kill(worker.pid, signal.SIGKILL)
            body = {"agent": "scribe", "input": "Milk.", "request_key": "one"}
            run_id = http.post("/v1/runs", json=body).json()["run_id"]
            assert finished(http, run_id)["state"] == "succeeded"
        again = bare("dev", "--app", "product:app", "--port", "0")
        assert again.code == 1
        assert "the services of this folder run already" in again.err
        children = psutil.Process(process.pid).children(recursive=True)
    assert (bare.folder / "ledger").read_text().count("\n") == 1
    assert not [child for child in children if child.is_running() and child.status() != psutil.STATUS_ZOMBIE]
    assert process.returncode == 0


def test_a_start_from_the_command_line_is_told_to_the_services_of_its_folder_at_once(
    bare: Shell, database: str
) -> None:
    with developing(bare):
        started = bare("runs", "start", "scribe", "Milk.", "--app", "product:app", "--wait", "--json")
        assert (started.code, started.value["run"]["state"]) == (0, "succeeded"), started.err
        assert "sent again later" not in started.err
        with psycopg.connect(database) as connection:
            told = connection.execute(
                "select state, attempts from agent.outbox where name = 'agentic/run.requested.v1'"
            ).fetchall()
    assert told == [("sent", 1)]  # by the command itself; a row left to the sweep is tried twice


def test_a_worker_joins_the_services_of_its_folder_and_goes_in_order(bare: Shell) -> None:
    with developing(bare) as (process, address):
        joined = bare.start("worker", "--app", "product:app")
        assert joined.stderr is not None
        assert joined.stdout is not None
        while "at work" not in (line := joined.stderr.readline()):
            assert line, "the worker ended"
        for worker in workers_of(process.pid):
            os.kill(worker.pid, signal.SIGSTOP)  # whoever answers now is the one that joined
        headers = {"Authorization": f"Bearer {bare('token').out.strip()}"}
        with httpx.Client(base_url=address, trust_env=False, timeout=30, headers=headers) as http:
            for worker in workers_of(process.pid):
                os.kill(worker.pid, signal.SIGKILL)
            body = {"agent": "scribe", "input": "Milk.", "request_key": "two"}
            run_id = http.post("/v1/runs", json=body).json()["run_id"]
            assert finished(http, run_id)["state"] == "succeeded"
        joined.terminate()
        assert joined.wait(timeout=READY_S) == 0
        joined.stdout.close()
        joined.stderr.close()


def test_services_that_were_killed_come_back_where_they_were_for_the_workers_that_had_joined_them(bare: Shell) -> None:
    def places() -> tuple[str, int]:
        told = json.loads((bare.folder / ".agentic" / "dev.json").read_text())
        return told["engine"], told["functions_port"]

    with developing(bare) as (process, _):
        before = places()
        process.kill()
    with developing(bare) as (process, address):
        assert places() == before
        headers = {"Authorization": f"Bearer {bare('token').out.strip()}"}
        with httpx.Client(base_url=address, trust_env=False, timeout=30, headers=headers) as http:
            body = {"agent": "scribe", "input": "Milk.", "request_key": "three"}
            run_id = http.post("/v1/runs", json=body).json()["run_id"]
            assert finished(http, run_id)["state"] == "succeeded"
        workers = workers_of(process.pid)
        process.kill()
    assert not psutil.wait_procs(workers, timeout=READY_S)[1]
    with (
        socket.create_server(("127.0.0.1", before[1])),
        socket.create_server(("127.0.0.1", int(before[0].rpartition(":")[2]))),
        developing(bare),
    ):
        assert not set(places()) & set(before)


def test_a_worker_without_a_function_server_says_what_to_start(bare: Shell) -> None:
    ended = bare("worker", "--app", "product:app")
    assert ended.code == 1
    assert "there is no function server to work for; start 'agentic" in ended.err.replace(str(bare.folder), "")


def test_an_app_that_does_not_exist_is_one_sentence_and_leaves_nothing_running(bare: Shell) -> None:
    ended = bare("dev", "--app", "nowhere:app", "--port", "0")
    assert ended.code == 1
    assert "there is no module 'nowhere'" in ended.err
    assert not (bare.folder / ".agentic" / "dev.json").exists()


def test_a_taken_port_of_the_api_is_named_with_what_to_do(bare: Shell) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        ended = bare("dev", "--app", "product:app", "--port", str(port))
    assert ended.code == 1
    assert f"the API cannot listen on 127.0.0.1:{port}" in ended.err
    assert "--port" in ended.err


def test_an_account_that_is_too_small_for_the_deployment_fails_the_check(bare: Shell) -> None:
    (bare.folder / "narrow.py").write_text(
        APP
        + """
from agentic.services.capacity.declared import Capacity, VendorAccount
from dataclasses import replace
small = replace(app, capacity=Capacity(accounts=(VendorAccount(provider="notebook", tools=("notes.save",), limit=39),)))
large = replace(app, capacity=Capacity(accounts=(VendorAccount(provider="notebook", tools=("notes.save",), limit=40),)))
typo = replace(app, capacity=Capacity(accounts=(VendorAccount(provider="notebook", tools=("notes.sav",), limit=1),)))
"""
    )
    refused = bare("capacity", "check", "--app", "narrow:small", "--json")
    assert refused.code == 1
    assert (refused.value[0]["calls"], refused.value[0]["fits"]) == (40, False)
    fits = bare("capacity", "check", "--app", "narrow:large")
    assert fits.code == 0
    assert "20 x 1 = 20" in fits.out
    typo = bare("capacity", "check", "--app", "narrow:typo")
    assert typo.code == 1
    assert "names tools that the app does not declare: notes.sav" in typo.err
    nothing = bare("capacity", "check", "--app", "product:app")
    assert nothing.code == 0
    assert "declares no vendor account" in nothing.err
