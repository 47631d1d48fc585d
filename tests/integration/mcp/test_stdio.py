"""Servers that run as children: what they get to see, what they can do to us, and that nothing of them is left."""

import asyncio
import fcntl
import json
import os
import signal
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import psutil
import pytest

from agentic.cli.mcp_homes import Left, remove_home
from agentic.services.mcp.failures import RemoteFailure, Trouble
from telemetry_recorder import recorded
from tests.integration.mcp.stage import TOKEN, Vault, alive, call, server_of, stdio_config, until

Look = Callable[[], Awaitable[None]]
pytestmark = pytest.mark.usefixtures("nothing_left")


@pytest.mark.guarantee("T4")
async def test_a_child_sees_the_environment_that_was_built_for_it_and_nothing_of_ours(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgres://inside")
    monkeypatch.setenv("OTHER_SECRET", "s-1")
    async with server_of(stdio_config(variables={"MODE": "quiet"})) as server:
        seen = json.loads(await call(server, "environment"))
    home = seen["HOME"]
    assert seen == {
        "PATH": seen["PATH"],
        "HOME": home,
        "TMPDIR": home,
        "LANG": "C.UTF-8",
        "LC_ALL": "C.UTF-8",
        "MODE": "quiet",
        "API_TOKEN": TOKEN,
    }
    assert "/usr/bin" in seen["PATH"]
    with pytest.raises(FileNotFoundError):
        os.stat(home)  # noqa: PTH116 - gone with the session


async def test_a_server_that_fills_its_stderr_answers_and_only_the_end_is_kept_without_the_secret() -> None:
    async with server_of(stdio_config()) as server:
        assert await call(server, "chatter") == "calm"
        with pytest.raises(RemoteFailure) as failure:
            await call(server, "die")
    assert failure.value.stderr is not None
    assert "the last words of a server" in failure.value.stderr and "the end [redacted]" in failure.value.stderr
    assert len(failure.value.stderr) <= 8192 and TOKEN not in failure.value.stderr


async def test_a_server_that_dies_tells_every_waiter_and_the_next_call_gets_a_new_one() -> None:
    async with server_of(stdio_config()) as server:
        first = await call(server, "pid")
        waiting = [asyncio.ensure_future(call(server, "never")) for _ in range(3)]
        await call(server, "echo")
        ends = await asyncio.gather(call(server, "die"), *waiting, return_exceptions=True)
        assert [type(end) for end in ends] == [RemoteFailure] * 4
        assert {end.trouble for end in ends if isinstance(end, RemoteFailure)} == {Trouble.DISCONNECTED}
        assert all(end.sent for end in ends if isinstance(end, RemoteFailure))
        assert await call(server, "pid") != first


async def test_an_answer_that_came_before_the_end_counts() -> None:
    async with server_of(stdio_config()) as server:
        assert await call(server, "answer_and_die") == "the last answer"


async def test_a_server_that_closes_its_output_and_lives_on_is_a_disconnected_one() -> None:
    async with server_of(stdio_config()) as server:
        with pytest.raises(RemoteFailure) as failure:
            await call(server, "close_output")
    assert failure.value.trouble is Trouble.DISCONNECTED


async def test_lines_that_are_no_messages_cost_nothing_but_themselves() -> None:
    async with server_of(stdio_config()) as server:
        assert await call(server, "garbage") == "after it"


@pytest.mark.parametrize(("how", "words"), [("half_character", "cut \ufffd here"), ("latin", "caf\ufffd")])
async def test_an_answer_with_half_a_character_loses_that_character(how: str, words: str) -> None:
    async with server_of(stdio_config()) as server:
        assert await call(server, how) == words


@pytest.mark.parametrize("how", ["deep", "no_result"])
async def test_an_answer_that_cannot_be_read_is_told_at_once_and_the_session_goes_on(how: str) -> None:
    async with server_of(stdio_config()) as server:
        pid = await call(server, "pid")
        with pytest.raises(RemoteFailure) as failure:
            await call(server, how, timeout_s=None)
        assert failure.value.trouble is Trouble.PROTOCOL and failure.value.sent
        assert await call(server, "pid") == pid


@pytest.mark.parametrize("how", ["long_line", "endless"])
async def test_a_line_beyond_the_limit_ends_the_server(how: str) -> None:
    async with server_of(stdio_config()) as server:
        with pytest.raises(RemoteFailure) as failure:
            await call(server, how, bytes=9 * 1024 * 1024)
    assert failure.value.trouble is Trouble.TOO_LARGE


async def test_a_caller_that_gives_up_is_free_at_once_the_server_is_told_and_its_late_answer_dropped() -> None:
    async with server_of(stdio_config()) as server:
        other = asyncio.ensure_future(call(server, "hold"))
        with pytest.raises(RemoteFailure) as failure:
            await call(server, "hold", timeout_s=0.1)
        assert failure.value.trouble is Trouble.TIMEOUT and failure.value.sent
        cut = asyncio.ensure_future(call(server, "hold"))
        await call(server, "echo")
        cut.cancel()
        assert isinstance((await asyncio.gather(cut, return_exceptions=True))[0], asyncio.CancelledError)
        while len(json.loads(await call(server, "cancelled"))) < 2:
            pass
        assert await call(server, "release") == "released"
        assert await other == "late"
        assert await call(server, "echo", n=1) == '{"n": 1}'


@pytest.mark.parametrize("method", ["sampling/createMessage", "roots/list", "elicitation/create"])
async def test_what_a_server_asks_of_us_is_refused_and_counted(method: str) -> None:
    async with server_of(stdio_config()) as server:
        answer = json.loads(await call(server, "ask", method=method))
        heard = (await server.connection()).session.heard
    assert "error" in answer and heard.refused == {method: 1}


async def test_what_was_refused_is_counted_by_server_and_method_whatever_the_server_calls_it() -> None:
    with recorded() as recording:
        async with server_of(stdio_config()) as server:
            for method in ("sampling/createMessage", "sampling/createMessage", "vendor/\x1bsecrets"):
                await call(server, "ask", method=method)
    counted = [labels for name, _, labels in recording.measured if name == "mcp_refused_requests_total"]
    assert counted == [
        {"server": "scripted", "method": method}
        for method in ("sampling/createMessage", "sampling/createMessage", "other")
    ]


async def test_a_server_that_works_for_no_client_without_folders_is_told_as_declined() -> None:
    async with server_of(stdio_config("needs_roots")) as server:
        with pytest.raises(RemoteFailure) as failure:
            await server.connection()
    assert failure.value.trouble is Trouble.DECLINED
    assert failure.value.stderr is not None and "no folders, no work" in failure.value.stderr


async def test_a_server_that_refuses_a_client_without_sampling_is_told_in_its_words_for_operators() -> None:
    async with server_of(stdio_config("needs_sampling")) as server:
        with pytest.raises(RemoteFailure) as failure:
            await server.connection()
    assert failure.value.trouble is Trouble.HANDSHAKE and failure.value.code == -32602
    assert failure.value.external_text == "this server needs a client that samples"
    assert "samples" not in str(failure.value)


async def test_a_server_that_asks_more_than_it_lets_us_answer_is_ended() -> None:
    async with server_of(stdio_config()) as server:
        with pytest.raises(RemoteFailure) as failure:
            await call(server, "flood")
    assert failure.value.trouble is Trouble.FLOODED


async def test_announced_changes_are_counted_and_start_nothing() -> None:
    async with server_of(stdio_config()) as server:
        assert await call(server, "announce", times=5_000) == "announced"
        assert (await server.connection()).session.heard.list_changed == 5_000


async def test_no_trace_of_ours_reaches_a_server() -> None:
    from opentelemetry import baggage, context

    token = context.attach(baggage.set_baggage("tenant", "acme-secret"))
    try:
        async with server_of(stdio_config()) as server:
            assert await call(server, "meta") == "null"
    finally:
        context.detach(token)


@pytest.mark.parametrize(
    ("habit", "trouble"),
    [("exits_at_start", Trouble.CONNECT), ("ancient", Trouble.HANDSHAKE), ("silent", Trouble.CONNECT_TIMEOUT)],
)
async def test_a_session_that_is_not_opened_says_why_and_leaves_nothing(habit: str, trouble: Trouble) -> None:
    async with server_of(stdio_config(habit, connect_s=0.5 if habit == "silent" else 30)) as server:
        with pytest.raises(RemoteFailure) as failure:
            await server.connection()
    assert failure.value.trouble is trouble and failure.value.surely_without_effect
    if habit == "exits_at_start":
        assert failure.value.stderr == "cannot find my database\n"


async def test_a_start_that_the_deployment_bounds_ends_there_whatever_the_server_is_given() -> None:
    async with server_of(stdio_config("silent", connect_s=120, start_s=1)) as server:
        with pytest.raises(RemoteFailure, match="within 1 seconds") as failure:
            await server.connection()
    assert failure.value.trouble is Trouble.CONNECT_TIMEOUT


async def test_a_home_is_held_while_a_server_lives_in_it_and_none_starts_in_one_that_is_being_removed(
    tmp_path: Path,
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "kept").touch()
    async with server_of(stdio_config(home=str(home))) as server:
        connection = await server.connection()
        assert remove_home(home, server_id="scripted", launches={}) is Left.IN_USE
        assert (home / "kept").exists()
        assert json.loads(await call(server, "environment"))["HOME"] == str(home)
        server.drop(connection, Trouble.TIMEOUT)
        await until(lambda: connection.session.gone)
        folder = os.open(home, os.O_RDONLY)
        try:
            fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
            with pytest.raises(RemoteFailure, match="is being removed") as failure:
                await server.connection()
        finally:
            os.close(folder)
        assert failure.value.trouble is Trouble.NOT_STARTED
    assert remove_home(home, server_id="scripted", launches={}) is None
    assert not home.exists()


async def test_a_program_that_is_not_there_or_may_not_run_is_not_started(tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    plain.write_text("no program")
    for command in ("surely-not-installed", str(plain)):
        config = stdio_config()
        endpoint = config.endpoint.model_copy(update={"command": (command,)})
        async with server_of(config.model_copy(update={"endpoint": endpoint})) as server:
            with pytest.raises(RemoteFailure) as failure:
                await server.connection()
        assert failure.value.trouble is Trouble.NOT_STARTED


async def test_a_credential_that_the_vault_does_not_have_starts_no_process() -> None:
    async with server_of(stdio_config(), vault=Vault(other="x")) as server:
        with pytest.raises(RemoteFailure) as failure:
            await server.connection()
    assert failure.value.trouble is Trouble.UNAUTHORIZED


@pytest.mark.parametrize("habits", [("ignores_eof",), ("ignores_eof", "ignores_term")])
async def test_a_server_that_does_not_leave_is_ended_with_what_it_started(habits: tuple[str, ...]) -> None:
    async with server_of(stdio_config(*habits)) as server:
        pids = json.loads(await call(server, "grandchild"))
        assert all(map(alive, pids))
    await until(lambda: not any(map(alive, pids)))


async def test_a_stopped_server_that_reads_nothing_holds_neither_a_caller_nor_the_close() -> None:
    async with server_of(stdio_config()) as server:
        await call(server, "stop")
        with pytest.raises(RemoteFailure) as failure:
            await call(server, "echo", timeout_s=0.2, pad="x" * 2_000_000)
        assert failure.value.trouble is Trouble.TIMEOUT


async def test_a_server_that_ended_by_itself_is_waited_for_at_the_close() -> None:
    async with server_of(stdio_config("ignores_eof", "ignores_term")) as server:
        first = int(await call(server, "pid"))
        with pytest.raises(RemoteFailure):
            await call(server, "close_output")
        assert int(await call(server, "pid")) != first
    assert not alive(first) and not _children()


async def test_any_task_opens_and_any_other_closes() -> None:
    servers = [server_of(stdio_config()) for _ in range(3)]
    opened = [await asyncio.create_task(each.__aenter__()) for each in servers]
    await asyncio.gather(*(asyncio.create_task(call(each, "echo")) for each in opened))
    for each in servers:
        await asyncio.create_task(each.__aexit__(None, None, None))


async def test_callers_that_come_together_share_one_opening_and_one_that_leaves_does_not_end_it() -> None:
    async with server_of(stdio_config()) as server:
        leaves = asyncio.ensure_future(call(server, "pid"))
        stay = [asyncio.ensure_future(call(server, "pid")) for _ in range(4)]
        await asyncio.sleep(0)
        leaves.cancel()
        assert len(set(await asyncio.gather(*stay))) == 1


async def test_a_close_in_the_middle_of_an_opening_ends_it() -> None:
    held = server_of(stdio_config("silent"))
    server = await held.__aenter__()
    opening = asyncio.ensure_future(server.connection())
    await until(lambda: bool(_children()))
    await server.aclose()
    for ended in (opening, server.connection()):
        with pytest.raises(RemoteFailure, match="being closed here"):
            await ended


async def test_a_connection_nobody_uses_closes_itself_and_one_in_use_does_not() -> None:
    async with server_of(stdio_config(idle_s=0.2)) as server:
        session = (await server.connection()).session
        held = asyncio.ensure_future(call(server, "hold"))
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(asyncio.shield(held), 0.5)
        assert await call(server, "release") == "released"
        await held
        await until(lambda: session.gone)
        assert await call(server, "echo") == "{}"


@pytest.mark.timeout(180)
async def test_a_hundred_rounds_leave_no_process_and_no_descriptor(nothing_left: Look) -> None:
    for _ in range(100):
        async with server_of(stdio_config()) as server:
            await server.connection()
    await nothing_left()


async def test_a_worker_that_is_killed_takes_a_server_that_hears_nothing_with_it() -> None:
    program = (
        "import asyncio, sys\n"
        "from tests.integration.mcp.stage import call, server_of, stdio_config\n"
        "async def main():\n"
        "    async with server_of(stdio_config('ignores_eof', 'ignores_term')) as server:\n"
        "        print(await call(server, 'grandchild'), flush=True)\n"
        "        await asyncio.sleep(600)\n"
        "asyncio.run(main())\n"
    )
    root = str(Path(__file__).parents[3])
    worker = await asyncio.create_subprocess_exec(
        sys.executable, "-c", program, env={**os.environ, "PYTHONPATH": root}, stdout=asyncio.subprocess.PIPE
    )
    assert worker.stdout is not None
    pids = json.loads(await worker.stdout.readline())
    assert all(map(alive, pids))
    worker.send_signal(signal.SIGKILL)
    await worker.wait()
    await until(lambda: not any(map(alive, pids)))


def _children() -> list[int]:
    """Guards of servers that were started."""
    return [each.pid for each in psutil.Process().children() if any("guard.py" in word for word in each.cmdline())]
