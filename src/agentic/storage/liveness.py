"""Whether the server of an idle connection is still there, without asking it."""

import select

from agentic.storage.pool import Connection


def gone(connection: Connection) -> bool:
    """Whether the server has left this connection, as far as this machine has heard.

    Whoever asked nothing hears nothing, but the end: an answer that waits on an idle connection is the server's farewell, or
    the close of the socket. A round trip would say more and cost every statement as much again.

    Args:
        connection: not in use; nothing of it listens for notifications.
    """
    if connection.closed:
        return True
    waiting = select.poll()
    waiting.register(connection.fileno(), select.POLLIN)
    return bool(waiting.poll(0))
