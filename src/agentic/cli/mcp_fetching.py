"""Servers whose program fetches them when it starts them, as ``npx`` does: time for that, and a way out when it was cut off.

A start that ends in the middle of a download leaves packages without their parts, which ``npx`` takes for whole ones ever after.
"""

import shutil
from pathlib import Path
from typing import Final

from agentic.services.mcp.config import ServerConfig, StdioLaunch, Timeouts
from agentic.services.mcp.failures import Trouble

FETCH_S: Final = 120.0
"""For a start that a person waits for. It is the longest wait that may be configured."""
CUT_OFF: Final = frozenset({Trouble.CONNECT, Trouble.CONNECT_TIMEOUT})
"""How the start of a server fails that is not there as a whole."""
_FETCHING: Final = frozenset(
    {"bun", "bunx", "deno", "docker", "npm", "npx", "pipx", "pnpm", "pnpx", "podman", "uv", "uvx", "yarn"}
)
_UNPACKED: Final = (".npm/_npx",)
"""Where packages lie unpacked, below a HOME. What such programs keep besides is written whole, and is used again."""


def downloads(launch: StdioLaunch) -> bool:
    """Whether a start may be a download."""
    return Path(launch.command[0]).name in _FETCHING


def fetches(config: ServerConfig) -> bool:
    """Whether the start of a server may be a download."""
    return isinstance(config.endpoint, StdioLaunch) and downloads(config.endpoint)


def with_time_to_fetch(config: ServerConfig) -> ServerConfig:
    """A server that is given the time that a download takes, unless somebody has said how long to wait."""
    said = isinstance(config.endpoint, StdioLaunch) and config.endpoint.start_s is not None
    if said or not fetches(config) or config.timeouts.connect_s != Timeouts().connect_s:
        return config
    return config.model_copy(update={"timeouts": config.timeouts.model_copy(update={"connect_s": FETCH_S})})


def drop_unpacked(home: Path) -> bool:
    """Have the next start under this HOME unpack its packages anew; whether there were any."""
    found = [folder for name in _UNPACKED if (folder := home / name).is_dir()]
    for folder in found:
        shutil.rmtree(folder, ignore_errors=True)
    return bool(found)
