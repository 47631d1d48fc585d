"""A worker that stands by: everything is imported, and what it is to do comes as one line on standard input.

Importing takes longer than all the rest of a start, so whoever will need a worker soon starts it early. Settings on standard input
are as private as those in the environment.
"""

import importlib
import os
import sys

from agentic.contract.errors import ProgramFault
from agentic.contract.values import Value

FLAG = "--standby"
_HEAVY = ("agentic.local.worker.serve", "agentic.runtime.agent.agno.runtime")


class Orders(Value):
    """What the line holds.

    Attributes:
        environment: variables, over those of the process.
        log: the file that standard error is appended to from now on.
    """

    environment: dict[str, str]
    log: str


def stand_by(app: str) -> bool:
    """Import what will be needed and wait for orders, which become this process's surroundings.

    Returns:
        ``False`` when standard input ended without any: nobody needs this worker.

    Raises:
        ProgramFault: the line cannot be read.
    """
    for module in (*_HEAVY, app.partition(":")[0]):
        if module:
            importlib.import_module(module)
    line = _line()
    if not line:
        return False
    try:
        orders = Orders.model_validate_json(line)
    except ValueError:
        raise ProgramFault("the orders on standard input cannot be read") from None
    os.environ.update(orders.environment)
    sys.stderr.flush()
    log = os.open(orders.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(log, sys.stderr.fileno())
    os.close(log)
    return True


def _line() -> bytes:
    """Unbuffered, so that nothing behind the line is swallowed."""
    read = bytearray()
    while not read.endswith(b"\n"):
        piece = os.read(0, 1)
        if not piece:
            return b""
        read += piece
    return bytes(read)
