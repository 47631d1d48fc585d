"""Run as a program of its own, between a worker and one server it started: whatever ends the worker ends the server's whole group.

It leads the process group. The worker holds the other end of a pipe that it never writes to; when that end is gone, so is the group, the
server's own children included. Standard input, output and errors are the server's alone, its exit is this program's exit. Only the
standard library, and little of it: this stands in the way of every start.
"""

import os
import select
import signal
import sys
from typing import Any

NOT_STARTED = 127


def main(life: int, held: list[int], command: list[str]) -> int:
    """Start ``command`` and wait for its end, or for the worker's.

    Args:
        life: the reading end of the pipe.
        held: descriptors that stay open, and are the server's no more than the pipe is.

    Returns:
        The exit code of the command; 128 and the number for one that a signal ended.
    """
    for descriptor in (life, *held):
        os.set_inheritable(descriptor, False)
    woken, wakes = os.pipe()
    os.set_blocking(wakes, False)
    # handlers, not SIG_IGN: a handler is gone after exec, so the server meets the signal as it would without us
    signal.signal(signal.SIGCHLD, _nothing)
    signal.signal(signal.SIGTERM, _nothing)
    signal.set_wakeup_fd(wakes)
    try:
        # Python ignores these two, which a server must not inherit
        server = os.posix_spawn(command[0], command, os.environ, setsigdef=[signal.SIGPIPE, signal.SIGXFSZ])
    except OSError as error:
        os.write(2, f"not started: {error.strerror}\n".encode())
        return NOT_STARTED
    for pipe in (0, 1, 2):
        os.close(pipe)  # or the worker would not see the server close its own
    while True:
        ready, _, _ = select.select([life, woken], [], [])
        if life in ready:
            os.killpg(0, signal.SIGKILL)
        os.read(woken, 512)
        ended, status = os.waitpid(server, os.WNOHANG)
        if ended:
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else 128 - code


def _nothing(number: int, frame: Any) -> None:
    """The wakeup pipe says it."""


if __name__ == "__main__":
    first, *others = map(int, sys.argv[1].split(","))
    os._exit(main(first, others, sys.argv[2:]))
