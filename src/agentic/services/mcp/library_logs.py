"""Keeps what the protocol's libraries log out of our logs: a server's garbage, addresses with their queries, sessions' ids, arguments."""

import logging
from typing import Final

_SDK_MODULES: Final = ("mcp/client/session.py", "mcp/client/__main__.py")


def quiet_libraries() -> None:
    """Keep the libraries' logs to themselves."""
    for name in ("mcp", "httpx2", "httpcore2"):
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    # the SDK logs under a name that somebody else's program may have too
    logging.getLogger("client").addFilter(_not_of_the_sdk)


def _not_of_the_sdk(record: logging.LogRecord) -> bool:
    return not record.pathname.endswith(_SDK_MODULES)
