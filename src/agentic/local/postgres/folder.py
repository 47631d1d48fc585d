"""Where an embedded Postgres keeps its files: makes the folder, recognises it, removes it.

A folder is ours when it holds our marker; any other folder with content is left untouched. As root the files may have
to live elsewhere, because the account that runs Postgres cannot enter, say, a project below /root: then the marker
names the place. What is inside is the business of `cluster.py` and `server.py`.
"""

import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from agentic.local.postgres.account import ServiceAccount, service_account
from agentic.local.postgres.errors import DataFolderError

_MARKER = "agentic-postgres.json"
_PLACES = (Path("/var/lib/agentic"), Path("/var/tmp/agentic"))
"""They survive a restart of the machine. The folders in them are made by mkdtemp, so nobody can prepare one for us."""
_LONGEST_SOCKET_DIR = 85
"""Bytes. A socket's whole path must stay under 104 on macOS and 108 on Linux, and Postgres appends up to 18."""


@dataclass(frozen=True, kw_only=True)
class Home:
    """The folder that holds one instance: its data, socket, password, log and locks."""

    path: Path

    @property
    def data(self) -> Path:
        """The Postgres data directory."""
        return self.path / "data"

    @property
    def log(self) -> Path:
        """What the server printed since its last start; the file before it has the suffix `.old`."""
        return self.path / "log"

    @property
    def password(self) -> Path:
        """The superuser's password, for the owner of the instance alone."""
        return self.path / "password"

    @property
    def lock(self) -> Path:
        """Locked exclusively while somebody starts, joins or stops the instance."""
        return self.path / "lock"

    @property
    def users(self) -> Path:
        """Locked shared by every process that uses the server, exclusively by the guard once nobody does."""
        return self.path / "users"

    @property
    def server(self) -> Path:
        """Locked exclusively by the guard, the server and every backend: free means that none of them is left."""
        return self.path / "server"

    @property
    def socket_dir(self) -> Path:
        """Where the server listens; reachable for its account and ours alone."""
        recorded = self.path / "socket_dir"
        if recorded.exists():
            return Path(recorded.read_text(encoding="utf-8"))
        return self.path / "run"

    def make_socket_dir(self, account: ServiceAccount) -> None:
        """Creates the socket's folder, outside the instance when a path inside it is too long for a socket."""
        inside = self.path / "run"
        if len(os.fsencode(inside)) <= _LONGEST_SOCKET_DIR:
            inside.mkdir(mode=0o700, exist_ok=True)
            account.own(inside)
        elif self.socket_dir == inside or not self.socket_dir.is_dir():
            short = Path(tempfile.mkdtemp(prefix="agentic-postgres-", dir=_short_parent(account)))
            account.own(short)
            (self.path / "socket_dir").write_text(str(short), encoding="utf-8")


def find_home(root: Path) -> Home | None:
    """The instance at `root`; None when there is nothing yet.

    Raises:
        DataFolderError: `root` holds something that is not ours, or cannot be read.
    """
    with told_as_folder_errors(root):
        if not root.exists():
            return None
        if not root.is_dir():
            raise DataFolderError(f"{root} is a file; the embedded Postgres needs a folder there. Name another one.")
        marker = root / _MARKER
        if marker.exists():
            place = _read(marker).get("place")
            home = Path(str(place)) if place else root
            if home.is_dir():
                return Home(path=home)
            raise DataFolderError(
                f"{marker} says that the data is in {home}, which is gone. Remove {root} to begin anew."
            )
        if any(root.iterdir()):
            raise DataFolderError(
                f"{root} holds files that the embedded Postgres did not put there; it was left untouched. "
                "Name an empty or a new folder, or set DATABASE_URL to a database of your own."
            )
        return None


def make_home(root: Path) -> Home:
    """The instance at `root`, made when there is none. Two processes that make it at once get the same one.

    Raises:
        DataFolderError: `root` is not ours, or cannot be written.
        ServiceAccountError: No account can run Postgres.
    """
    existing = find_home(root)
    if existing:
        return existing
    with told_as_folder_errors(root):
        account = service_account()
        root.parent.mkdir(parents=True, exist_ok=True)
        # complete before it gets its name: nobody may see a folder with content and without the marker
        draft = Path(tempfile.mkdtemp(prefix=f".{root.name}-", dir=root.parent))
        place: Path | None = None
        try:
            if account.switch:
                draft.chmod(0o711)
            if not account.reaches(root.parent):
                place = _place_elsewhere()
            (draft / _MARKER).write_text(json.dumps({"place": str(place) if place else None}), encoding="utf-8")
            draft.rename(root)
        except BaseException as error:
            shutil.rmtree(draft, ignore_errors=True)
            if place:
                shutil.rmtree(place, ignore_errors=True)
            made_meanwhile = find_home(root) if isinstance(error, OSError) else None
            if made_meanwhile is None:
                raise
            return made_meanwhile
        return Home(path=place or root)


def remove_home(root: Path, home: Home) -> None:
    """Deletes the instance. The caller holds its lock and knows that no server runs."""
    socket_dir = home.socket_dir
    if socket_dir.parent != home.path:
        shutil.rmtree(socket_dir, ignore_errors=True)
    # the root first: it is what others look for
    doomed = root.with_name(f".{root.name}-removed-{os.getpid()}")
    root.rename(doomed)
    if home.path != root:
        shutil.rmtree(home.path, ignore_errors=True)
    shutil.rmtree(doomed, ignore_errors=True)


def _short_parent(account: ServiceAccount) -> Path:
    """A temporary folder with a short path that the account can enter."""
    for parent in (Path(tempfile.gettempdir()), Path("/tmp")):
        if len(os.fsencode(parent)) <= _LONGEST_SOCKET_DIR - 30 and account.reaches(parent):
            return parent
    raise DataFolderError("no temporary folder has a path short enough for a socket. Set TMPDIR to a short one.")


def _place_elsewhere() -> Path:
    """A new folder that the service account can reach, for a root user whose project it cannot."""
    for parent in _PLACES:
        try:
            parent.mkdir(mode=0o755, exist_ok=True)
            place = Path(tempfile.mkdtemp(prefix="postgres-", dir=parent))
        except OSError:
            continue
        place.chmod(0o711)
        return place
    raise DataFolderError(
        "the account that runs Postgres cannot enter the data folder, and neither "
        f"{' nor '.join(map(str, _PLACES))} can be written. Name a data folder outside the home of root."
    )


def _read(marker: Path) -> Mapping[str, object]:
    try:
        found = json.loads(marker.read_text(encoding="utf-8"))
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise DataFolderError(
            f"{marker} is damaged. Restore it, or remove {marker.parent} to begin with an empty database."
        )
    return found


@contextmanager
def told_as_folder_errors(root: Path) -> Iterator[None]:
    """Turns what the file system refuses into a sentence with the remedy."""
    try:
        yield
    except OSError as error:
        raise DataFolderError(
            f"the data folder {root} cannot be used: {error.strerror or error} ({error.filename or root}). "
            "Give this user access to it, name another folder, or set DATABASE_URL to a database of your own."
        ) from error
