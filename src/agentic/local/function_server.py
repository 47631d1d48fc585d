"""Which function server the demo uses: the person's own when the environment names one, else the embedded engine."""

import os
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from agentic.contract.errors import AgenticError

DEV = "INNGEST_DEV"
BASE_URL = "INNGEST_BASE_URL"
_DEFAULT = "http://127.0.0.1:8288"
"""Where the SDK looks when ``INNGEST_DEV`` only says yes."""
_PORTS = {"http": 80, "https": 443}
_CONNECT_S = 3.0


class FunctionServerAway(AgenticError):
    """The environment names a function server that does not answer."""


@dataclass(frozen=True, kw_only=True, slots=True)
class NamedServer:
    """A function server that the environment names."""

    variable: str
    url: str


def named_server(environment: Mapping[str, str] = os.environ) -> NamedServer | None:
    """The server the environment names; ``None`` leaves the work to the embedded engine."""
    base = environment.get(BASE_URL, "").strip()
    if base:
        return NamedServer(variable=BASE_URL, url=base)
    dev = environment.get(DEV, "").strip()
    if dev.lower() in ("", "0", "false"):
        return None
    return NamedServer(variable=DEV, url=dev if "://" in dev else _DEFAULT)


def require_reachable(server: NamedServer) -> None:
    """Find out before anything is started.

    Raises:
        FunctionServerAway: nobody listens there.
    """
    reason = why_away(server)
    if reason is not None:
        raise FunctionServerAway(
            f"{server.variable} names the function server {server.url}, which does not answer ({reason}); "
            f"start it, or unset {server.variable} to use the embedded engine"
        )


def why_away(server: NamedServer) -> str | None:
    """Why nobody can be reached there; ``None`` when somebody listens. Takes three seconds at most."""
    try:
        parts = urlsplit(server.url)
        port = parts.port or _PORTS.get(parts.scheme, 80)
        socket.create_connection((parts.hostname or "", port), timeout=_CONNECT_S).close()
    except (OSError, ValueError) as error:
        return error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return None
