"""The stdio servers of a deployment: a file of its own in the shape the field uses, read strictly and written whole.

A command is what runs beside the worker, so it is never in the database, where a tenant could write it. The file says how a server is
started; the row says that it exists, what its tools may do and which credential it gets. What is wrong with the file costs the servers it
is about and nobody else: they are not started, and whoever asks is told why.
"""

import fcntl
import json
import logging
import os
import re
import secrets
import stat
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from agentic.contract.errors import ProgramFault
from agentic.services.mcp.config import MAX_START_S, MIN_START_S, Owner, ServerConfig, StdioLaunch
from agentic.services.mcp.config_check import server_faults
from agentic.services.mcp.environment import DEFAULT_PATH
from agentic.services.mcp.locating import VARIABLE
from agentic.services.tools.redaction import is_credential_name, redact_text

MAX_BYTES: Final = 1024 * 1024
_SERVERS: Final = "mcpServers"
_FIELDS: Final = ("type", "command", "args", "env", "cwd", "home", "path", "start_s")
_TOO_LARGE: Final = f"it is larger than {MAX_BYTES} bytes"
_REMEDY: Final = "keep it in the vault and use the scheme env"
_NO_TEXT: Final = re.compile(r"[\0\ud800-\udfff]")
_log = logging.getLogger(__name__)


class DeploymentRefused(ProgramFault):
    """The file cannot be used. ``faults`` names everything that is wrong with it."""

    def __init__(self, path: Path, faults: tuple[str, ...], *, cannot: str = "be used") -> None:
        super().__init__(f"{path} cannot {cannot}: {'; '.join(faults)}")
        self.faults = faults


@dataclass(frozen=True, kw_only=True, slots=True)
class Entries:
    """What a file says, as far as it can be used."""

    launches: Mapping[str, StdioLaunch] = field(default_factory=dict)
    """By server id."""
    faults: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """What is wrong with an entry, by its name; it is not in ``launches`` then."""
    unusable: str | None = None
    """Why nothing of the file can be used."""


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


def read_entries(path: Path, *, missing_ok: bool = False) -> Entries:
    """What a file says. Every fault is named, none with a value that could be a secret."""
    try:
        entries = _entries(path, missing_ok=missing_ok)
    except DeploymentRefused as refused:
        return Entries(unusable="; ".join(refused.faults))
    faults = {name: found for name, entry in entries.items() if (found := tuple(_faults(name, entry)))}
    return Entries(
        launches={name: _launch(entry) for name, entry in entries.items() if name not in faults}, faults=faults
    )


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
            entries = _entries(path, missing_ok=True)
            if launch is None:
                entries.pop(server_id, None)
            else:
                entries[server_id] = _entry(launch)
                if faults := tuple(f"{server_id[:64]}: {fault}" for fault in _faults(server_id, entries[server_id])):
                    raise DeploymentRefused(path, faults, cannot="take this server")
            _replace(path, entries)
    except OSError as error:
        fault = f"{error.strerror or type(error).__name__}; name a file that may be written with {VARIABLE}"
        raise DeploymentRefused(path, (fault,), cannot="be written") from error


def _replace(path: Path, entries: Mapping[str, Any]) -> None:
    # a lone surrogate, which an entry beside the new one may hold, is kept as the escape it was
    text = json.dumps({_SERVERS: entries}, indent=2, ensure_ascii=False).encode(errors="backslashreplace") + b"\n"
    if len(text) > MAX_BYTES:
        raise DeploymentRefused(path, (_TOO_LARGE,), cannot="take this server")
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


def _entries(path: Path, *, missing_ok: bool) -> dict[str, Any]:
    try:
        text = _text(path)
    except FileNotFoundError:
        if missing_ok:
            return {}
        raise DeploymentRefused(
            path, (f"there is no such file; write it, or correct {VARIABLE}, which names it",)
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise DeploymentRefused(path, (f"it cannot be read ({reason})",)) from None
    try:
        document = json.loads(text, object_pairs_hook=_once)
    except (ValueError, RecursionError) as error:
        where = f"line {error.lineno}: {error.msg}" if isinstance(error, json.JSONDecodeError) else str(error)
        raise DeploymentRefused(path, (f"it is no JSON we take ({where})",)) from None
    if not isinstance(document, dict) or not isinstance(document.get(_SERVERS), dict):
        raise DeploymentRefused(path, (f'it is an object {{"{_SERVERS}": {{…}}}} with an entry for each server',))
    if others := sorted(document.keys() - {_SERVERS}):
        raise DeploymentRefused(
            path, (f"beside {_SERVERS} stands {', '.join(others)[:200]}, which means nothing here",)
        )
    entries: dict[str, Any] = document[_SERVERS]
    return entries


def _text(path: Path) -> str:
    with path.open("rb") as file:
        if os.fstat(file.fileno()).st_mode & stat.S_IWOTH:
            raise DeploymentRefused(
                path, (f"everybody may write it, and it names programs that we start; run 'chmod o-w {path}'",)
            )
        content = file.read(MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        raise DeploymentRefused(path, (_TOO_LARGE,))
    return content.decode("utf-8")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    read = dict(pairs)
    if len(read) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"{twice[:64]} stands twice in one object")
    return read


def _faults(name: str, entry: object) -> Iterator[str]:
    """Everything that is wrong with one entry."""
    shape = tuple(_shape_faults(entry))
    yield from shape
    if not shape and isinstance(entry, dict):
        launch = _launch(entry)
        yield from _value_faults(launch)
        config = ServerConfig(server_id=name, owner=Owner.OPERATOR, endpoint=launch)
        yield from server_faults(config, permits=lambda _: True)


def _shape_faults(entry: object) -> Iterator[str]:
    """What is wrong with how an entry is written; each value has the type the field gives it."""
    if not isinstance(entry, dict):
        yield 'an entry is an object, such as {"command": "npx", "args": ["-y", "some-server"]}'
        return
    if "url" in entry:
        yield "a server somewhere else is no process of this machine; drop it here and run 'agentic mcp add NAME --url URL'"
        return
    if unknown := sorted(entry.keys() - set(_FIELDS)):
        yield f"{', '.join(unknown)[:200]} means nothing here; an entry has {', '.join(_FIELDS[1:])}"
    if entry.get("type", "stdio") != "stdio":
        yield "the type of a server in this file is stdio"
    if not isinstance(entry.get("command"), str):
        yield "command is the program, as text"
    args, env = entry.get("args", []), entry.get("env", {})
    if not (isinstance(args, list) and all(isinstance(each, str) for each in args)):
        yield "args is a list of texts"
    if not (isinstance(env, dict) and all(isinstance(each, str) for each in env.values())):
        yield "env is an object of texts"
    for name in ("cwd", "home", "path"):
        if not isinstance(entry.get(name, ""), str):
            yield f"{name} is a text"
    start_s = entry.get("start_s", MIN_START_S)
    if isinstance(start_s, bool) or not isinstance(start_s, int | float) or not MIN_START_S <= start_s <= MAX_START_S:
        yield f"start_s is a number of seconds from {MIN_START_S} to {MAX_START_S}"


def _value_faults(launch: StdioLaunch) -> Iterator[str]:
    """What `config_check` does not see: it judges the names that the vault's own vocabulary knows."""
    texts = (*launch.command, launch.cwd or "", launch.home or "", launch.path, *launch.variables.values())
    if any(_NO_TEXT.search(text) for text in texts):
        yield "a value holds a character that no program can be given, such as U+0000 or a byte that is no UTF-8"
    for name, value in launch.variables.items():
        known = is_credential_name(name)  # which config_check says
        if not known and (name.upper().endswith("TOKEN") or redact_text(value) != value):
            yield f"the variable {name[:64]} reads like a credential; {_REMEDY}"
        if "${" in value:
            yield f"the variable {name[:64]} asks for a substitution, and none is made here; write its value"
    if any(redact_text(word) != word for word in launch.command):
        yield f"an argument reads like a credential, and everybody on the machine can read it; {_REMEDY}"


def _launch(entry: Mapping[str, Any]) -> StdioLaunch:
    given = {name: entry[name] for name in ("cwd", "home", "path", "start_s") if entry.get(name)}
    return StdioLaunch(command=(entry["command"], *entry.get("args", ())), variables=entry.get("env", {}), **given)


def _entry(launch: StdioLaunch) -> dict[str, Any]:
    command, *arguments = launch.command
    entry: dict[str, Any] = {"command": command, "args": arguments, "env": dict(launch.variables)}
    entry |= {"cwd": launch.cwd, "home": launch.home, "path": "" if launch.path == DEFAULT_PATH else launch.path}
    entry |= {"start_s": launch.start_s}
    return {name: value for name, value in entry.items() if value}
