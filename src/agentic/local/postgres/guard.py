"""The small process that is the parent of an embedded Postgres: stops it when nobody uses it any more.

It runs as a script of its own, with the standard library alone, and outlives whoever started it. A process that uses
the server holds a shared lock on a file; the kernel drops it when the process ends, by SIGKILL too. When the guard gets
the exclusive lock, nobody is left and it shuts Postgres down cleanly. Should the guard itself be killed, the kernel
sends Postgres the signal to shut down.

Being a process with one thread that forks, it also keeps PR_SET_PDEATHSIG honest: that signal is sent when the forking
*thread* ends, which in a program with worker threads is long before the program does.
"""

import contextlib
import ctypes
import fcntl
import json
import os
import signal
import sys
import threading
import time
from typing import Any

_PR_SET_PDEATHSIG = 1
_FAST_SHUTDOWN_S = 20
"""How long sessions get to end after the polite signal, before Postgres is told to leave them."""


def main(argument: str) -> None:
    """Starts Postgres and stays until it has ended.

    Args:
        argument: JSON object with `command` (argument list), `env`, `users` (path of the lock file), `log` (path),
            `uid` and `gid` (null to keep ours), `socket_dir` (a folder to remove afterwards, or null). The server
            lock arrives as an inherited descriptor and stays open here and in Postgres.
    """
    spec = json.loads(argument)
    if os.fork():
        os._exit(0)  # the starter waits for this one only, and has no child to look after
    output = os.open(spec["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(output, 1)
    os.dup2(output, 2)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    guard = os.getpid()
    server = os.fork()
    if server == 0:
        _become_postgres(spec, guard)
    # the machine going down tells everybody: pass it on, so that the server is stopped before we are
    signal.signal(signal.SIGTERM, lambda *_: os.kill(server, signal.SIGINT))
    threading.Thread(target=_stop_when_unused, args=(spec["users"], server), daemon=True).start()
    os.waitpid(server, 0)
    if spec["socket_dir"] is not None:  # we still hold the server lock, so nobody has made a new one
        with contextlib.suppress(OSError):  # not empty after a crash, or gone: the next start finds out
            os.rmdir(spec["socket_dir"])  # noqa: PTH106 - as little to import as can be
    os._exit(0)


def _become_postgres(spec: dict[str, Any], guard: int) -> None:
    try:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        if spec["uid"] is not None:
            os.setgroups([])
            os.setgid(spec["gid"])
            os.setuid(spec["uid"])
        if sys.platform == "linux":  # after the change of user, which would clear it
            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGINT)
            if os.getppid() != guard:
                os._exit(1)
        os.umask(0o077)
        os.execve(spec["command"][0], spec["command"], spec["env"])
    except OSError as error:
        os.write(2, f"cannot run {spec['command'][0]}: {error}\n".encode())
    os._exit(1)


def _stop_when_unused(users: str, server: int) -> None:
    descriptor = os.open(users, os.O_RDWR)
    fcntl.flock(
        descriptor, fcntl.LOCK_EX
    )  # held until this process ends: a newcomer waits for the old server to be gone
    os.kill(server, signal.SIGINT)
    time.sleep(_FAST_SHUTDOWN_S)
    os.kill(server, signal.SIGQUIT)


if __name__ == "__main__":
    main(sys.argv[1])
