"""Where the development services of a folder are, for whoever wants to join them: a small file, there as long as they are."""

import contextlib
import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from pydantic import Field, ValidationError

from agentic.contract.values import Value

FILE = "dev.json"
_ANSWER_S = 3.0


class DevAddress(Value):
    """The addresses of running development services.

    Attributes:
        engine: where the function engine listens.
        functions_port: the port that workers of the app share.
        app: import path of the app.
        database: which it works on, without its password.
        folder: where the file stands; a copy of the folder has a copy of the file.
        pid: the process that holds them together.
        stand_ins: variables by which an app reaches the vendors' stand-ins; empty without them.
    """

    engine: str
    functions_port: int
    app: str
    database: str
    folder: str
    pid: int
    stand_ins: dict[str, str] = Field(default_factory=dict)


@contextlib.contextmanager
def announced(folder: Path, address: DevAddress) -> Iterator[None]:
    """Keep the file while the block runs. A killed process leaves it behind; whoever reads it asks the engine first."""
    path = folder / FILE
    draft = path.with_name(f"{FILE}.{os.getpid()}")
    draft.write_text(address.model_dump_json())
    draft.replace(path)
    try:
        yield
    finally:
        if _read(path) == address:
            path.unlink(missing_ok=True)


def left_behind(folder: Path, app: str) -> DevAddress | None:
    """Where services of this app were that were killed. Workers that had joined them by hand still serve and send there."""
    address = _read(folder / FILE)
    return address if address is not None and address.app == app else None


def running(folder: Path) -> DevAddress | None:
    """The development services of this folder; ``None`` when nobody answers there, or the file was copied from another."""
    address = _read(folder / FILE)
    if address is None or address.folder != str(folder.resolve()):
        return None
    import httpx  # not for who only finds no file

    try:
        answer = httpx.get(f"{address.engine}/health", timeout=_ANSWER_S, trust_env=False).json()
    except (httpx.HTTPError, ValueError):
        return None
    return address if isinstance(answer, dict) and answer.get("engine") == "agentic" else None


def stand_ins_of(folder: Path, database: str | None = None) -> Mapping[str, str]:
    """The variables by which the running services of this folder have their app reach stand-ins; none where they do not stand in.

    Args:
        folder: where the services are looked for.
        database: which the caller works on, without its password. Services on another one do not count; ``None`` takes any.
    """
    written = _read(folder / FILE)
    if written is None or not written.stand_ins or database not in (None, written.database):
        return {}
    found = running(folder)
    return {} if found is None else found.stand_ins


def _read(path: Path) -> DevAddress | None:
    try:
        return DevAddress.model_validate_json(path.read_text())
    except (OSError, ValidationError):
        return None
