"""The processes that tests fork from a warm one: what each has of its own, and how its end is told."""

import json
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from warm_processes import Warm

PATIENCE_S = 40
PROGRAM = """
import atexit, json, os, sys, threading, time
SEEN = []
def tell():
    SEEN.append(sys.argv[1:])
    print(json.dumps([SEEN, sys.stdin.read(), os.getcwd(), dict(os.environ)]))
    sys.exit("seven")
def fail():
    raise ValueError("no")
def leave():
    atexit.register(print, "at its end")
    threading.Thread(target=lambda: (time.sleep(0.05), print("beside it"))).start()
    print("left", end=" ")
def wait():
    print("waits", flush=True)
    time.sleep(600)
"""


@pytest.fixture
def warm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Warm]:
    (tmp_path / "forked.py").write_text(PROGRAM)
    monkeypatch.syspath_prepend(tmp_path)
    processes = Warm("forked")
    yield processes
    processes.close()


def test_each_process_has_its_own_arguments_folder_environment_streams_and_memory(warm: Warm, tmp_path: Path) -> None:
    for word in ("one", "two"):
        ended = warm.run(
            "forked:tell", word, folder=tmp_path, environment={"WORD": word}, typed="ö", timeout_s=PATIENCE_S
        )
        assert (ended.code, ended.err) == (1, "seven\n")
        assert json.loads(ended.out) == [[[word]], "ö", str(tmp_path), {"WORD": word}]


def test_an_error_ends_its_process_alone_and_is_told_as_python_tells_it(warm: Warm) -> None:
    failed = warm.run("forked:fail", environment={}, timeout_s=PATIENCE_S)
    assert (failed.code, failed.err.splitlines()[-1]) == (1, "ValueError: no")
    assert warm.run("forked:tell", environment={}, timeout_s=PATIENCE_S).err == "seven\n"


def test_what_a_program_leaves_to_its_end_is_done_in_the_order_of_python(warm: Warm) -> None:
    left = warm.run("forked:leave", environment={}, timeout_s=PATIENCE_S)
    assert (left.code, left.out, left.err) == (0, "left beside it\nat its end\n", "")


def test_a_process_that_goes_on_too_long_or_is_left_is_killed_and_waited_for(warm: Warm) -> None:
    with pytest.raises(TimeoutError):
        warm.run("forked:wait", environment={}, timeout_s=0.01)
    with warm.started("forked:wait", environment={}) as left:
        pass
    assert left.wait(PATIENCE_S) == -signal.SIGKILL
    assert warm.run("forked:tell", environment={}, timeout_s=PATIENCE_S).err == "seven\n"
