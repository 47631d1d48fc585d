"""The stdio servers of a deployment: a file of its own in the shape the field uses, read strictly and written whole.

A command is what runs beside the worker, so it is never in the database, where a tenant could write it. The file says how a server is
started; the row says that it exists, what its tools may do and which credential it gets.
"""

import fcntl
import json
import logging
import os
import secrets
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from agentic.contract.errors import ProgramFault
from agentic.services.mcp.config import Owner, ServerConfig, StdioLaunch
from agentic.services.mcp.config_check import server_faults
from agentic.services.mcp.environment import DEFAULT_PATH
from agentic.services.mcp.locating import VARIABLE
from agentic.services.tools.redaction import is_credential_name, redact_text

MAX_BYTES: Final = 1024 * 1024
_SERVERS: Final = "mcpServers"
_FIELDS: Final = ("type", "command", "args", "env", "cwd", "home", "path")
_REMEDY: Final = "keep it in the vault and use the scheme env"
_log = logging.getLogger(__name__)


class DeploymentRefused(ProgramFault):
    """The file cannot be used. ``faults`` names everything that is wrong with it."""

    def __init__(self, path: Path, faults: tuple[str, ...], *, cannot: str = "be used") -> None:
        super().__init__(f"{path} cannot {cannot}: {'; '.join(faults)}")
        self.faults = faults


class LaunchFile(Mapping[str, StdioLaunch]):
    """How each server of the file is started, by server id, as the file stands now: it is read again when it was changed.

    A later change that cannot be read leaves in force what was read before it, and says so in the log once.

    Args:
        path: the file.
        missing_ok: a file that is not there yet holds no servers.

    Raises:
        DeploymentRefused: it is not there, or cannot be used.
    """

    def __init__(self, path: Path, *, missing_ok: bool = False) -> None:
        self.path = path
        self._missing_ok = missing_ok
        self._seen = self._version()
        self._launches = read_launches(path, missing_ok=missing_ok)

    def __getitem__(self, server_id: str) -> StdioLaunch:
        """How this server is started."""
        return self._now()[server_id]

    def __iter__(self) -> Iterator[str]:
        """The servers' ids."""
        return iter(self._now())

    def __len__(self) -> int:
        """How many there are."""
        return len(self._now())

    def _now(self) -> Mapping[str, StdioLaunch]:
        version = self._version()
        if version != self._seen:
            self._seen = version
            try:
                self._launches = read_launches(self.path, missing_ok=self._missing_ok)
            except DeploymentRefused as refused:
                _log.warning("%s; its servers stay as they were", refused)
        return self._launches

    def _version(self) -> tuple[int, ...] | None:
        try:
            found = self.path.stat()
        except OSError:
            return None
        return (found.st_ino, found.st_size, found.st_mtime_ns)


def launches_from_environment(
    default: Path | None = None, environment: Mapping[str, str] = os.environ
) -> Mapping[str, StdioLaunch]:
    """The servers of the file that ``AGENTIC_MCP_SERVERS`` names, which has to be there.

    Args:
        default: the file of a deployment that names none; it may be missing. ``None`` is a deployment without stdio servers.

    Raises:
        DeploymentRefused: the file cannot be used.
    """
    if named := environment.get(VARIABLE, "").strip():
        return LaunchFile(Path(named))
    return {} if default is None else LaunchFile(default, missing_ok=True)


def read_launches(path: Path, *, missing_ok: bool = False) -> dict[str, StdioLaunch]:
    """How each server of a file is started.

    Raises:
        DeploymentRefused: naming every fault, none with a value that could be a secret.
    """
    launches: dict[str, StdioLaunch] = {}
    faults: list[str] = []
    for name, entry in _entries(path, missing_ok=missing_ok).items():
        found = list(_shape_faults(entry))
        if not found:
            launches[name] = launch = _launch(entry)
            config = ServerConfig(server_id=name, owner=Owner.OPERATOR, endpoint=launch)
            found = [*_value_faults(launch), *server_faults(config, permits=lambda _: True)]
        faults += [f"{name[:64]}: {fault}" for fault in found]
    if faults:
        raise DeploymentRefused(path, tuple(faults))
    return launches


def put_launch(path: Path, server_id: str, launch: StdioLaunch | None) -> None:
    """Write how a server is started into a file, or that it is not started any more; what else stands there stays.

    A reader sees the file before or after, never half of it. Its owner alone may read it.

    Args:
        launch: ``None`` takes the server out.

    Raises:
        DeploymentRefused: the file cannot be used as it is, or would not be with this; nothing was written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with _alone(path.parent):
        entries = _entries(path, missing_ok=True)
        if launch is None:
            entries.pop(server_id, None)
        else:
            entries[server_id] = _entry(launch)
        draft = path.with_name(f"{path.name}.{os.getpid()}.{secrets.token_hex(4)}")
        try:
            with os.fdopen(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "w", encoding="utf-8") as file:
                json.dump({_SERVERS: entries}, file, indent=2, ensure_ascii=False)
                file.write("\n")
                file.flush()
                os.fsync(file.fileno())
            read_launches(draft)
            draft.replace(path)
        except DeploymentRefused as refused:
            others = [fault for fault in refused.faults if not fault.startswith(f"{server_id[:64]}: ")]
            raise DeploymentRefused(path, refused.faults, cannot="be used" if others else "take this server") from None
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
        raise DeploymentRefused(path, (f"it is larger than {MAX_BYTES} bytes",))
    return content.decode("utf-8")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    read = dict(pairs)
    if len(read) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"{twice[:64]} stands twice in one object")
    return read


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


def _value_faults(launch: StdioLaunch) -> Iterator[str]:
    """What `config_check` does not see: it judges the names that the vault's own vocabulary knows."""
    for name, value in launch.variables.items():
        known = is_credential_name(name)  # which config_check says
        if not known and (name.upper().endswith("TOKEN") or redact_text(value) != value):
            yield f"the variable {name[:64]} reads like a credential; {_REMEDY}"
        if "${" in value:
            yield f"the variable {name[:64]} asks for a substitution, and none is made here; write its value"
    if any(redact_text(word) != word for word in launch.command):
        yield f"an argument reads like a credential, and everybody on the machine can read it; {_REMEDY}"


def _launch(entry: Mapping[str, Any]) -> StdioLaunch:
    given = {name: entry[name] for name in ("cwd", "home", "path") if entry.get(name)}
    return StdioLaunch(command=(entry["command"], *entry.get("args", ())), variables=entry.get("env", {}), **given)


def _entry(launch: StdioLaunch) -> dict[str, Any]:
    command, *arguments = launch.command
    entry: dict[str, Any] = {"command": command, "args": arguments, "env": dict(launch.variables)}
    entry |= {"cwd": launch.cwd, "home": launch.home, "path": "" if launch.path == DEFAULT_PATH else launch.path}
    return {name: value for name, value in entry.items() if value}
