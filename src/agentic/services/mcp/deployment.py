"""The stdio servers of a deployment: a file of its own in the shape the field uses, followed as it changes and written whole.

A command is what runs beside the worker, so it is never in the database, where a tenant could write it. The file says how a server is
started; the row says that it exists, what its tools may do and which credential it gets. What is wrong with the file costs the servers it
is about and nobody else: they are not started, and whoever asks is told why.
"""

import fcntl
import logging
import os
import secrets
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from agentic.services.mcp.config import StdioLaunch
from agentic.services.mcp.launch_entries import (
    DeploymentRefused,
    Entries,
    entry_faults,
    entry_of,
    raw_entries,
    read_entries,
    text_of,
)
from agentic.services.mcp.locating import VARIABLE

_log = logging.getLogger(__name__)


class LaunchFile(Mapping[str, StdioLaunch]):
    """How each server of the file is started, by server id, as the file stands now: it is read again when it was changed.

    What cannot be used is not in here, and ``not_started`` says why. After a later change, what cannot be used stays as it was read
    before, and the log says so once.

    Args:
        path: the file.
        missing_ok: a file that is not there yet holds no servers.
    """

    def __init__(self, path: Path, *, missing_ok: bool = False) -> None:
        self.path = path
        self._missing_ok = missing_ok
        self._seen = self._version()
        self._entries = read_entries(path, missing_ok=missing_ok)

    def __getitem__(self, server_id: str) -> StdioLaunch:
        """How this server is started."""
        return self._now().launches[server_id]

    def __iter__(self) -> Iterator[str]:
        """The servers' ids."""
        return iter(self._now().launches)

    def __len__(self) -> int:
        """How many there are."""
        return len(self._now().launches)

    @property
    def faults(self) -> tuple[str, ...]:
        """Everything that is wrong with the file, each with its place; nothing when all of it can be used."""
        now = self._now()
        found = (f"{name[:64]}: {fault}" for name, faults in now.faults.items() for fault in faults)
        return (now.unusable,) if now.unusable is not None else tuple(found)

    @property
    def broken(self) -> Collection[str]:
        """Names of entries that cannot be used."""
        return self._now().faults.keys()

    def not_started(self, server_id: str) -> str:
        """Why a server that is not in here is not started."""
        now = self._now()
        if now.unusable is not None:
            return f"{self.path} cannot be used: {now.unusable}"
        if faults := now.faults.get(server_id):
            return f"its entry in {self.path} cannot be used: {'; '.join(faults)}"
        return f"{self.path} has no command for it; write one there, as docs/mcp.md shows"

    def _now(self) -> Entries:
        version = self._version()
        if version != self._seen:
            self._seen = version
            before, found = self._entries.launches, read_entries(self.path, missing_ok=self._missing_ok)
            kept = (
                before if found.unusable is not None else {name: before[name] for name in found.faults.keys() & before}
            )
            known = self._entries.faults, self._entries.unusable
            self._entries = replace(found, launches={**kept, **found.launches})
            if (faults := self.faults) and (found.faults, found.unusable) != known:
                _log.warning("%s cannot be used: %s; what it is about stays as it was", self.path, "; ".join(faults))
        return self._entries

    def _version(self) -> tuple[int, ...] | None:
        try:
            found = self.path.stat()
        except OSError:
            return None
        return (found.st_ino, found.st_size, found.st_mtime_ns, found.st_mode)


def not_started(launches: Mapping[str, StdioLaunch], server_id: str) -> str | None:
    """Why this deployment does not start a stdio server; ``None`` when it does."""
    if server_id in launches:
        return None
    if isinstance(launches, LaunchFile):
        return launches.not_started(server_id)
    return f"this deployment has no command for the stdio server {server_id}; add it to its file of servers, which {VARIABLE} names"


def launches_from_environment(
    default: Path | None = None, environment: Mapping[str, str] = os.environ
) -> Mapping[str, StdioLaunch]:
    """The servers of the file that ``AGENTIC_MCP_SERVERS`` names, which has to be there. What is wrong with it is logged.

    Args:
        default: the file of a deployment that names none; it may be missing. ``None`` is a deployment without stdio servers.
    """
    named = environment.get(VARIABLE, "").strip()
    if not named and default is None:
        return {}
    launches = LaunchFile(Path(named)) if named else LaunchFile(default or Path(), missing_ok=True)
    if launches.faults:
        _log.warning(
            "%s cannot be used: %s; what it is about is not started", launches.path, "; ".join(launches.faults)
        )
    return launches


def put_launch(path: Path, server_id: str, launch: StdioLaunch | None) -> None:
    """Write how a server is started into a file, or that it is not started any more; what else stands there stays, right or wrong.

    A reader sees the file before or after, never half of it. Its owner alone may read it.

    Args:
        launch: ``None`` takes the server out.

    Raises:
        DeploymentRefused: the file has no entries as it is, may not have this one, or cannot be written; nothing was.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with _alone(path.parent):
            entries = raw_entries(path, missing_ok=True)
            if launch is None:
                entries.pop(server_id, None)
            else:
                entries[server_id] = entry_of(launch)
                if faults := tuple(
                    f"{server_id[:64]}: {fault}" for fault in entry_faults(server_id, entries[server_id])
                ):
                    raise DeploymentRefused(path, faults, cannot="take this server")
            _replace(path, text_of(path, entries))
    except OSError as error:
        fault = f"{error.strerror or type(error).__name__}; name a file that may be written with {VARIABLE}"
        raise DeploymentRefused(path, (fault,), cannot="be written") from error


def _replace(path: Path, text: bytes) -> None:
    draft = path.with_name(f"{path.name}.{os.getpid()}.{secrets.token_hex(4)}")
    try:
        with os.fdopen(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Two commands at once would each write the file without the other's server."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
