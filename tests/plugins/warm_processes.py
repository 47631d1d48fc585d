"""Processes that start where another has already imported everything: each is forked for one call, and is gone afterwards.

A real process in all that a test notices: its own memory, environment, folder and streams, an exit status, and it can be killed.
What it cannot show is how a program starts from nothing; the tests of that start an interpreter.
"""

import atexit
import gc
import importlib
import json
import os
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, NoReturn

_NUMBER = struct.Struct("!i")
_START_S = 60


@dataclass(frozen=True, kw_only=True)
class Ended:
    """How a process ended.

    Attributes:
        code: its exit status; what killed it as a negative number.
    """

    code: int
    out: str
    err: str

    @property
    def value(self) -> Any:
        """Standard output as the one JSON value it must be."""
        return json.loads(self.out)


class Warm:
    """Forks processes, one at a time.

    Args:
        modules: imported once, before the first of them.
    """

    def __init__(self, *modules: str) -> None:
        self._ours, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, __file__, str(theirs.fileno()), *modules],
                env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
            )

    def run(
        self,
        call: str,
        *arguments: str,
        folder: Path | None = None,
        environment: Mapping[str, str],
        typed: str | None = None,
        timeout_s: float,
    ) -> Ended:
        """Call a function in a process of its own, as the whole of it.

        Args:
            call: ``module:function``, as of a console script: it finds the arguments in ``sys.argv``.
            folder: where it is; ``None`` is where the tests are.
            environment: all of it.
            typed: standard input.
            timeout_s: it is killed after so long.

        Raises:
            TimeoutError: it was killed; the message holds what it had said.
        """
        with _file(typed) as given, _file() as out, _file() as err:
            with self.started(
                call, *arguments, folder=folder, environment=environment, streams=(given, out, err)
            ) as process:
                try:
                    code = process.wait(timeout_s)
                except TimeoutError:
                    said = f"{_text(out)}{_text(err)}"
                    raise TimeoutError(f"{call} goes on after {timeout_s:g} s; so far it said:\n{said}") from None
            return Ended(code=code, out=_text(out), err=_text(err))

    @contextmanager
    def started(
        self,
        call: str,
        *arguments: str,
        folder: Path | None = None,
        environment: Mapping[str, str],
        streams: Sequence[IO[bytes]] | None = None,
    ) -> Iterator["Process"]:
        """As ``run``, while it goes on; it is killed at the end of the block, unless it was waited for.

        Args:
            streams: standard input, output and error; ``None`` are those of the tests.
        """
        request = {
            "call": call,
            "arguments": arguments,
            "folder": str(folder or Path.cwd()),
            "environment": dict(environment),
        }
        given: list[Any] = [0, 1, 2] if streams is None else [stream.fileno() for stream in streams]
        with _file(json.dumps(request)) as asked:
            socket.send_fds(self._ours, [b"?"], [asked.fileno(), *given])
            process = Process(self._ours)
        try:
            yield process
        finally:
            process.kill()

    def close(self) -> None:
        """End whoever forks them."""
        self._ours.close()
        self._process.wait(timeout=_START_S)


class Process:
    """One that was forked.

    Args:
        told: where its id and its end are told.
    """

    def __init__(self, told: socket.socket) -> None:
        self._told = told
        self._telling = threading.Lock()  # a thread may wait while another one kills
        self._code: int | None = None
        self.pid = self._number(_START_S)

    def wait(self, timeout_s: float) -> int:
        """Its exit status.

        Raises:
            TimeoutError: it goes on.
        """
        with self._telling:
            if self._code is None:
                self._code = self._number(timeout_s)
            return self._code

    def kill(self) -> None:
        """With SIGKILL, unless it has ended."""
        if self._code is None:
            os.kill(self.pid, signal.SIGKILL)
            self.wait(_START_S)

    def _number(self, timeout_s: float) -> int:
        self._told.settimeout(timeout_s)
        told = self._told.recv(_NUMBER.size)
        if len(told) < _NUMBER.size:
            raise RuntimeError("whoever forks processes is gone; standard error says why")
        number: int = _NUMBER.unpack(told)[0]
        return number


def _file(text: str | None = None) -> IO[bytes]:
    file: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - the caller closes it
    file.write((text or "").encode())
    file.seek(0)
    return file


def _text(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode()


# -- the process that forks ------------------------------------------------------------------------------------------


def _fork_for(channel: socket.socket) -> dict[str, Any]:
    """Fork for each request until nobody asks; comes back in each child alone, with what it shall do."""
    while True:
        asked, files, _, _ = socket.recv_fds(channel, 1, 4)
        if not asked:
            os._exit(0)
        pid = os.fork()
        if pid == 0:
            channel.close()
            with open(files[0]) as text:
                request: dict[str, Any] = json.load(text)
            for number, file in enumerate(files[1:]):
                os.dup2(file, number)
                os.close(file)
            return request
        for file in files:
            os.close(file)
        channel.sendall(_NUMBER.pack(pid))
        channel.sendall(_NUMBER.pack(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])))


def _main(descriptor: str, *modules: str) -> None:
    for module in modules:
        importlib.import_module(module)
    gc.collect()
    gc.freeze()  # else each child walks, and so copies, all of it when it ends
    request = _fork_for(socket.socket(fileno=int(descriptor)))
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environment"])
    module, _, name = request["call"].partition(":")
    sys.argv[:] = ["-c", *request["arguments"]]
    _ended_as_a_program(getattr(importlib.import_module(module), name))


def _ended_as_a_program(call: Callable[[], object]) -> NoReturn:
    """What an interpreter does when its program has ended, but for taking apart, and so copying, all that was imported before."""
    code = 0
    try:
        call()
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else 0 if ended.code is None else 1
        if isinstance(ended.code, str):
            print(ended.code, file=sys.stderr)
    except Exception:  # noqa: BLE001 - said, as the interpreter would
        code = 1
        sys.excepthook(*sys.exc_info())
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except OSError:
        code = 120
    os._exit(code & 0xFF)


if __name__ == "__main__":
    _main(*sys.argv[1:])
