"""The life cycle of the embedded Postgres: start or join, leave or stop, start again after anything was killed.

Any number of processes use one instance. The first starts the server, the others join it, the last to leave stops it;
leaving is also what happens to a process that dies. No process id is ever trusted: file locks say who is alive. The
folder is `folder.py`'s, the data `cluster.py`'s, and `guard.py` is the server's parent.
"""

import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType
from urllib.parse import quote

import psycopg

from agentic.local.postgres import guard
from agentic.local.postgres.account import ServiceAccount, service_account
from agentic.local.postgres.binaries import Binaries
from agentic.local.postgres.cluster import (
    SUPERUSER,
    choose_binaries,
    initialise,
    reachable_binaries,
    server_environment,
)
from agentic.local.postgres.errors import DataFolderError, ServerFailedError
from agentic.local.postgres.folder import Home, find_home, make_home, remove_home, told_as_folder_errors
from agentic.local.postgres.locks import try_lock, wait_for_lock

DEFAULT_ROOT = Path(".agentic/postgres")
"""Beside the project that uses it, relative to the working directory."""

_SETTINGS = {
    "listen_addresses": "",
    "port": "5432",  # the name of the socket; nothing listens on it
    "unix_socket_permissions": "0700",
    "shared_buffers": "64MB",
    "max_connections": "100",
    "wal_level": "minimal",
    "max_wal_senders": "0",
    "jit": "off",
    "timezone": "UTC",
}
_POLL_S = 0.005
_LOCK_TIMEOUT_S = 150.0
"""Longer than the slowest first start of another process."""


class EmbeddedPostgres:
    """One Postgres in a folder, shared by every process that names the same folder.

    Use it as a context manager, or pair `start` with `stop`. The object is not for several threads at once.
    """

    def __init__(
        self,
        root: Path = DEFAULT_ROOT,
        *,
        binaries: Binaries | None = None,
        settings: Mapping[str, str] | None = None,
        timeout_s: float = 60.0,
    ) -> None:
        """Names the instance; nothing is touched before `start`.

        Args:
            root: Its folder, made by the first start. Relative paths count from the working directory of now.
            binaries: The programs to run; None chooses the best that can read the folder's data.
            settings: Server settings over the defaults, such as `{"fsync": "off"}` for a test. They count for whoever
                really starts the server, not for those who join it.
            timeout_s: How long a start or a stop may take, recovery after a crash included.
        """
        self._root = root.absolute()
        self._binaries = binaries
        self._settings = {**_SETTINGS, **(settings or {})}
        self._timeout_s = timeout_s
        self._home: Home | None = None
        self._membership: int | None = None

    def start(self) -> str:
        """Joins the running server or starts it, creating the data on the first start. Calling it again is safe.

        Call it again after a connection failed: when the server was killed, it starts and recovers.

        Returns:
            The URL of the database `postgres`, for the superuser. It contains the password.

        Raises:
            NoBinariesError: No Postgres runs on this machine.
            DataFolderError: The folder is not ours, not writable, or of another version.
            ServiceAccountError: There is no account under which Postgres would run.
            ServerFailedError: It did not start; the message quotes its log.
        """
        parent_is_ours = not self._root.parent.exists()
        with self._exclusively() as home, told_as_folder_errors(self._root):
            self._home = home
            fresh = not home.data.exists()
            try:
                self._join(home)
                return self._start_or_join(home)
            except BaseException:
                self._leave()
                if fresh and not home.data.exists():  # nothing came to be, so nothing is left behind
                    remove_home(self._root, home)
                    if parent_is_ours:
                        self._root.parent.rmdir()
                raise

    def serves(self) -> bool:
        """Whether a server runs in the folder now; it may be just starting or stopping.

        Raises:
            DataFolderError: The folder is gone, or cannot be used.
        """
        home = find_home(self._root)
        if home is None:
            raise DataFolderError(f"the data folder {self._root} was removed, and its data with it.")
        with told_as_folder_errors(self._root):
            lock = try_lock(home.server)
        if lock is not None:
            os.close(lock)
        return lock is None

    def stop(self) -> bool:
        """Leaves the server, and waits until it has shut down when nobody else uses it.

        Returns:
            True when no server is left, False when it goes on for other processes.

        Raises:
            ServerFailedError: It did not shut down in time.
        """
        if self._membership is None or self._home is None:
            return True
        home = self._home
        if not home.path.exists():  # somebody removed the folder by hand; the guard still sees us go
            self._leave()
            return True
        lock = wait_for_lock(home.lock, timeout_s=_LOCK_TIMEOUT_S)
        try:
            self._leave()
            return self._wait_until_stopped(home)
        finally:
            if lock is not None:
                os.close(lock)

    def destroy(self) -> None:
        """Stops the server and deletes the instance with all its data.

        Raises:
            ServerFailedError: Other processes still use it; nothing was deleted.
        """
        if find_home(self._root) is None:
            return
        with self._exclusively() as home:
            self._leave()
            if not self._wait_until_stopped(home):
                raise ServerFailedError(f"other processes still use the Postgres in {self._root}; it was not deleted.")
            remove_home(self._root, home)

    def __enter__(self) -> str:
        """Starts; the value is the URL."""
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Leaves or stops."""
        self.stop()

    @contextlib.contextmanager
    def _exclusively(self) -> Iterator[Home]:
        """The instance's folder, made when missing, while no other process starts, joins or stops it."""
        choose_binaries(find_home(self._root), self._binaries)  # a folder that nothing could serve is not made
        deadline = time.monotonic() + _LOCK_TIMEOUT_S
        lock = None
        while lock is None:
            home = make_home(self._root)
            try:
                lock = try_lock(home.lock)
            except FileNotFoundError:  # its maker failed and removed it between the two lines above
                continue
            except OSError as error:
                raise DataFolderError(
                    f"the data folder {self._root} cannot be used: {error.strerror} ({home.lock}). "
                    "Run as the user who made it, or name another folder."
                ) from error
            if lock is None:
                if time.monotonic() > deadline:
                    raise ServerFailedError(
                        f"another process has been starting the Postgres in {self._root} for too long."
                    )
                time.sleep(_POLL_S)
        try:
            yield home
        finally:
            os.close(lock)

    def _join(self, home: Home) -> None:
        """Counts this process among the users. Waits out a guard that is just stopping the server."""
        if self._membership is None:
            self._membership = wait_for_lock(home.users, shared=True, timeout_s=self._timeout_s)
        if self._membership is None:
            raise ServerFailedError(
                f"the Postgres in {self._root} is shutting down and has not finished. Try again later."
            )

    def _leave(self) -> None:
        if self._membership is not None:
            os.close(self._membership)
            self._membership = None

    def _start_or_join(self, home: Home) -> str:
        deadline = time.monotonic() + self._timeout_s
        launched = False
        while time.monotonic() < deadline:
            server_lock = try_lock(home.server)
            if server_lock is None:
                if home.password.exists() and self._answers(home):
                    return self._url(home)
            elif launched:
                os.close(server_lock)
                raise ServerFailedError(
                    f"Postgres ended while starting in {self._root}. Its log says: {_tail(home.log)}"
                )
            else:
                try:
                    self._launch(home, server_lock)
                finally:
                    os.close(server_lock)  # the guard has inherited it
                launched = True
            time.sleep(_POLL_S)
        raise ServerFailedError(
            f"the Postgres in {self._root} did not answer within {self._timeout_s:g} s. Its log says: {_tail(home.log)}"
        )

    def _launch(self, home: Home, server_lock: int) -> None:
        binaries = choose_binaries(home, self._binaries)
        account = service_account(home.data if home.data.exists() else None)
        programs = reachable_binaries(home, binaries, account)
        if not home.data.exists():
            initialise(home, binaries, programs, account, server_lock=server_lock)
        if not home.password.exists():
            raise DataFolderError(
                f"{home.password} is missing, and without it nobody can log in. Restore it, or remove {self._root} "
                "to begin with an empty database."
            )
        home.make_socket_dir(account)
        _remove_stale_pid_file(home)
        if home.log.exists():
            home.log.replace(home.log.with_suffix(".old"))
        settings = {**self._settings, "unix_socket_directories": str(home.socket_dir)}
        command = [str(programs / "postgres"), "-D", str(home.data)]
        for name, value in settings.items():
            command += ["-c", f"{name}={value}"]
        _spawn_guard(home, command, account, server_lock)

    def _answers(self, home: Home) -> bool:
        try:
            psycopg.connect(self._url(home), connect_timeout=5).close()
        except psycopg.OperationalError as error:
            if "password authentication failed" in str(error):
                raise DataFolderError(
                    f"the Postgres in {self._root} refuses the password in {home.password}. Restore that file, or "
                    f"remove {self._root} to begin with an empty database."
                ) from error
            return False
        return True

    def _url(self, home: Home) -> str:
        password = home.password.read_text(encoding="utf-8")
        # the port too: a PGPORT in the environment would lead to another socket
        where = f"host={quote(str(home.socket_dir), safe='')}&port={self._settings['port']}"
        return f"postgresql://{SUPERUSER}:{quote(password, safe='')}@/postgres?{where}"

    def _wait_until_stopped(self, home: Home) -> bool:
        """True when the server is gone, False when others use it. The caller holds the instance's lock."""
        deadline = time.monotonic() + self._timeout_s
        while time.monotonic() < deadline:
            server_lock = try_lock(home.server)
            if server_lock is not None:
                os.close(server_lock)
                return True
            # neither lock to be had means that the guard has seen us go; exclusive means that it is about to
            alone = try_lock(home.users)
            if alone is None:
                others = try_lock(home.users, shared=True)
                if others is not None:
                    os.close(others)
                    return False
            else:
                os.close(alone)
            time.sleep(_POLL_S)
        raise ServerFailedError(f"the Postgres in {self._root} did not shut down. Its log says: {_tail(home.log)}")


def _spawn_guard(home: Home, command: list[str], account: ServiceAccount, server_lock: int) -> None:
    spec = {
        "command": command,
        "env": server_environment(home.path),
        "users": str(home.users),
        "log": str(home.log),
        "uid": account.uid if account.switch else None,
        "gid": account.gid if account.switch else None,
        "socket_dir": None if home.socket_dir.parent == home.path else str(home.socket_dir),
    }
    done = subprocess.run(
        [sys.executable, "-I", "-S", guard.__file__, json.dumps(spec)],
        cwd="/",
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        pass_fds=(server_lock,),
        start_new_session=True,
        timeout=30,
        check=False,
    )
    if done.returncode != 0:
        raise ServerFailedError(f"the guard of the embedded Postgres did not start: {done.stderr.decode()[-600:]}")


def _remove_stale_pid_file(home: Home) -> None:
    """Removes the pid file of a killed server whose number another program has by now; Postgres would refuse to start.

    The server lock is ours, so none of our servers lives; one that somebody started by hand works in the data folder.
    """
    pid_file = home.data / "postmaster.pid"
    with contextlib.suppress(FileNotFoundError, ValueError):
        process = Path("/proc", str(int(pid_file.read_text(encoding="utf-8").split()[0])))
        if process.exists() and (process / "cwd").resolve() != home.data.resolve():
            pid_file.unlink()


def _tail(log: Path) -> str:
    try:
        return log.read_text(encoding="utf-8", errors="replace").strip()[-600:] or "nothing"
    except FileNotFoundError:
        return "nothing"
