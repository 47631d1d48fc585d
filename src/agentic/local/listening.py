"""Sockets and servers of our own on this machine."""

import contextlib
import socket
from collections.abc import Iterator

import uvicorn

_BACKLOG = 2048


def listening_socket(host: str, port: int, *, shared: bool = False) -> socket.socket:
    """A socket that takes connections from now on; a client that comes before its server waits in the backlog.

    Args:
        host: an address of this machine.
        port: 0 takes a free one.
        shared: other processes may listen on the same port, if they say so too.

    Raises:
        OSError: the port cannot be had.
    """
    # without the protocol asyncio leaves Nagle's algorithm on, and a kept connection waits 40 ms for each answer
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if shared:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        listener.bind((host, port))
        # Now, not when the server gets to it: two sockets may bind one address, only one may listen.
        listener.listen(_BACKLOG)
    except BaseException:
        listener.close()
        raise
    return listener


class UnsignalledServer(uvicorn.Server):
    """uvicorn without its own signal handlers: what a signal means is for the program to say, such as calls that end first."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals to the process."""
        yield
