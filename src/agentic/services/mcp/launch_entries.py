"""What stands in a deployment's file of stdio servers: read strictly, judged entry by entry, every fault with its place and no secret."""

import json
import os
import re
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
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


def read_entries(path: Path, *, missing_ok: bool = False) -> Entries:
    """What a file says. Every fault is named, none with a value that could be a secret."""
    try:
        entries = raw_entries(path, missing_ok=missing_ok)
    except DeploymentRefused as refused:
        return Entries(unusable="; ".join(refused.faults))
    faults = {name: found for name, entry in entries.items() if (found := tuple(entry_faults(name, entry)))}
    return Entries(
        launches={name: _launch(entry) for name, entry in entries.items() if name not in faults}, faults=faults
    )


def raw_entries(path: Path, *, missing_ok: bool) -> dict[str, Any]:
    """The entries as they were written, right or wrong.

    Raises:
        DeploymentRefused: the file as a whole cannot be used.
    """
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


def text_of(path: Path, entries: Mapping[str, Any]) -> bytes:
    """The file with these entries, as it is written.

    Raises:
        DeploymentRefused: it would be too large to be read.
    """
    # a lone surrogate, which an entry that cannot be used may hold, is kept as the escape it was
    text = json.dumps({_SERVERS: entries}, indent=2, ensure_ascii=False).encode(errors="backslashreplace") + b"\n"
    if len(text) > MAX_BYTES:
        raise DeploymentRefused(path, (_TOO_LARGE,), cannot="take this server")
    return text


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


def entry_faults(name: str, entry: object) -> Iterator[str]:
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


def entry_of(launch: StdioLaunch) -> dict[str, Any]:
    """An entry that is read as this launch."""
    command, *arguments = launch.command
    entry: dict[str, Any] = {"command": command, "args": arguments, "env": dict(launch.variables)}
    entry |= {"cwd": launch.cwd, "home": launch.home, "path": "" if launch.path == DEFAULT_PATH else launch.path}
    entry |= {"start_s": launch.start_s}
    return {name: value for name, value in entry.items() if value}
