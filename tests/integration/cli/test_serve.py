"""``agentic serve``: API and functions in one process, and how it ends."""

import asyncio
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import httpx
import jwt
import pytest

from agentic.local.dev.service import free_port
from agentic.local.engine import FunctionEngine

if TYPE_CHECKING:
    from tests.integration.cli.conftest import Seed, Shell

pytestmark = pytest.mark.timeout(300)  # each command is a process of its own

SECRET = "a secret that only tests know, long enough to sign with"
APP = """
from agentic import AgentDefinition, App
app = App(agents=[AgentDefinition(name="scribe", instructions="Write.", model="script")])
"""
READY_S = 50


@contextmanager
def serving(shell: "Shell", *arguments: str, **variables: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The process and its address, once it listens."""
    (shell.folder / "product.py").write_text(APP)
    given = {"INNGEST_DEV": "http://127.0.0.1:1", "SUPABASE_JWT_SECRET": SECRET, **variables}
    process = shell.start("serve", "--app", "product:app", "--port", "0", *arguments, **given)
    assert process.stderr is not None
    assert process.stdout is not None
    try:
        said = process.stderr.readline()
        assert said.startswith("the API is at http://127.0.0.1:"), said + process.stderr.read()
        yield process, said.split()[4].removesuffix("/v1,")
    finally:
        process.kill()
        process.wait(timeout=READY_S)
        process.stdout.close()
        process.stderr.close()


def test_the_api_and_the_functions_answer_from_one_process(seed: "Seed", shell: "Shell") -> None:
    claims = {
        "sub": str(seed.approver),
        "aud": "authenticated",
        "exp": int(time.time()) + 600,
        "app_metadata": {"organization_id": str(seed.organization)},
    }
    headers = {"Authorization": f"Bearer {jwt.encode(claims, SECRET, algorithm='HS256')}"}
    with serving(shell) as (_, address), httpx.Client(base_url=address, trust_env=False, timeout=30) as http:
        assert http.get("/healthz").json() == {"status": "ok"}
        assert http.get("/v1/approvals").status_code == 401
        approvals = http.get("/v1/approvals", params={"status": "pending"}, headers=headers).json()["approvals"]
        assert [approval["id"] for approval in approvals] == [seed.approval]
        assert http.get("/api/inngest").json()["function_count"] == 8


def test_a_function_server_that_is_away_is_one_warning_and_it_serves_all_the_same(seed: "Seed", shell: "Shell") -> None:
    with serving(shell) as (process, address):
        assert process.stderr is not None
        warning = process.stderr.readline()
        assert warning.startswith(
            "warning: INNGEST_DEV names the function server http://127.0.0.1:1, which does not answer"
        )
        assert "outbox" in warning
        assert httpx.get(f"{address}/healthz", trust_env=False, timeout=30).status_code == 200


async def test_a_function_server_that_comes_later_is_told_of_the_functions_by_itself(
    seed: "Seed", shell: "Shell", database: str
) -> None:
    port = free_port()
    with serving(shell, INNGEST_DEV=f"http://127.0.0.1:{port}") as (process, _):
        stderr = process.stderr
        assert stderr is not None
        assert (await asyncio.to_thread(stderr.readline)).startswith("warning: INNGEST_DEV names the function server")
        engine = FunctionEngine(dsn=database, port=port)
        await engine.start()
        try:
            while "the function server knows the functions" not in (line := await asyncio.to_thread(stderr.readline)):
                assert line, "it ended"
        finally:
            await engine.stop(grace_s=1)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 0)])
def test_a_signal_ends_it_in_order_and_without_noise(
    seed: "Seed", shell: "Shell", number: signal.Signals, code: int
) -> None:
    with serving(shell) as (process, address):
        assert httpx.get(f"{address}/healthz", trust_env=False, timeout=30).status_code == 200
        process.send_signal(number)
        assert process.wait(timeout=READY_S) == code
        assert process.stderr is not None
        assert "Traceback" not in process.stderr.read()


def test_what_keeps_it_from_serving_is_one_sentence(seed: "Seed", shell: "Shell") -> None:
    (shell.folder / "product.py").write_text(APP)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        cases = [
            (["--app", "product:app", "--port", port], {}, f"port {port}"),
            (["--app", "nowhere:app", "--port", "0"], {}, "nowhere"),
            (["--app", "product:missing", "--port", "0"], {}, "missing"),
            (["--app", "product:app", "--port", "0"], {"INNGEST_DEV": ""}, "INNGEST_SIGNING_KEY"),
            (["--app", "product:app", "--port", "0"], {"SUPABASE_JWT_SECRET": "short"}, "32 bytes"),
        ]
        for arguments, variables, told in cases:
            given = {"INNGEST_DEV": "1", "SUPABASE_JWT_SECRET": SECRET, **variables}
            ended = shell("serve", *arguments, **given)
            assert ended.code == 1, told
            assert told in ended.err
            assert ended.err.splitlines()[-1].startswith("error: ")
            assert "Traceback" not in ended.err
