"""Whoever starts, joins, leaves or is killed: there is one server while it is used, none afterwards, and no data is lost."""

import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest

from agentic.local.postgres import EmbeddedPostgres, ServerFailedError
from agentic.local.postgres.folder import find_home
from agentic.local.postgres.locks import wait_for_lock

_USER = """
import sys
from pathlib import Path
from agentic.local.postgres import EmbeddedPostgres
server = EmbeddedPostgres(Path(sys.argv[1]))
print(server.start(), flush=True)
sys.stdin.readline()
print(server.stop(), flush=True)
"""
_PATIENCE_S = 60


class User:
    """Another process that uses an instance: starts at once, stops when told."""

    def __init__(self, root: Path) -> None:
        """Begins to start; `url` waits until it has."""
        self.process = subprocess.Popen(
            [sys.executable, "-c", _USER, str(root)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def url(self) -> str:
        """What its start returned."""
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def stop(self) -> str:
        """Lets it stop and end; the value is what its stop returned."""
        answer, _ = self.process.communicate("\n", timeout=_PATIENCE_S)
        assert self.process.returncode == 0
        return answer.strip()

    def kill(self) -> None:
        """SIGKILL, as the kernel sends it when memory runs out."""
        self.process.kill()
        self.process.communicate(timeout=_PATIENCE_S)


Starter = Callable[[], User]


@pytest.fixture(scope="module")
def made_once() -> Iterator[Path]:
    """Folder of one instance for all tests here: making one is the slow part, and each test leaves it stopped."""
    folder = Path(tempfile.mkdtemp(prefix="agentic-test-"))
    folder.chmod(0o711)
    yield folder / "postgres"
    EmbeddedPostgres(folder / "postgres").destroy()
    folder.rmdir()


@pytest.fixture
def root(made_once: Path) -> Iterator[Path]:
    """The instance; a test that leaves its server running fails."""
    yield made_once
    lock = wait_for_lock(made_once / "server", timeout_s=_PATIENCE_S) if made_once.exists() else None
    assert lock is not None
    os.close(lock)


@pytest.fixture
def user(root: Path) -> Iterator[Callable[[], User]]:
    """Starts a process that uses the instance at `root`."""
    users: list[User] = []

    def start() -> User:
        users.append(User(root))
        return users[-1]

    yield start
    for found in users:
        if found.process.poll() is None:
            found.kill()


def postmaster(root: Path) -> int:
    """Process id of the server at `root`."""
    return int((root / "data" / "postmaster.pid").read_text(encoding="utf-8").split()[0])


def parent(pid: int) -> int:
    """Process id of its parent."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return int(fields[1])


def wait_until_gone(pid: int) -> None:
    """Returns when no such process is left."""
    deadline = time.monotonic() + _PATIENCE_S
    while time.monotonic() < deadline:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return
        if Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] == "Z":
            return
        time.sleep(0.01)
    pytest.fail(f"process {pid} is still there")


def write(url: str, value: int) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("drop table if exists kept; create table kept (value int)")
        connection.execute("insert into kept values (%s)", (value,))


def read(url: str) -> list[int]:
    with psycopg.connect(url) as connection:
        return [row[0] for row in connection.execute("select value from kept order by value")]


def test_what_was_written_is_there_after_a_stop_and_a_start(root: Path) -> None:
    with EmbeddedPostgres(root) as url:
        write(url, 1)
        server = postmaster(root)
    wait_until_gone(server)
    with EmbeddedPostgres(root) as url:
        assert read(url) == [1]


def test_the_socket_and_the_password_are_for_the_owner_alone(root: Path) -> None:
    with EmbeddedPostgres(root) as url:
        assert (root / "run").stat().st_mode & 0o077 == 0
        assert (root / "data").stat().st_mode & 0o077 == 0
        assert (root / "password").stat().st_mode & 0o077 == 0
        with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
            psycopg.connect(psycopg.conninfo.make_conninfo(url, password="wrong"))
        with psycopg.connect(url) as connection:
            assert connection.execute("show listen_addresses").fetchone() == ("",)
            assert connection.execute("show fsync").fetchone() == ("on",)


def test_a_socket_folder_outside_a_deep_instance_goes_with_the_server(place: Path) -> None:
    root = place / ("deep" * 25) / "postgres"
    root.parent.mkdir(mode=0o711)
    server = EmbeddedPostgres(root)
    server.start()
    home = find_home(root)
    assert home is not None
    short = home.socket_dir
    assert short.is_dir()
    assert home.path not in short.parents
    server.stop()
    assert not short.exists()
    server.start()  # makes a new one
    server.destroy()


def test_a_second_process_joins_the_warm_server_and_leaves_it_running(root: Path, user: Starter) -> None:
    with EmbeddedPostgres(root) as url:
        server = postmaster(root)
        other = user()
        assert other.url() == url
        assert other.stop() == "False"
        assert postmaster(root) == server
        write(url, 1)


def test_the_server_outlives_the_process_that_started_it_while_others_use_it(root: Path, user: Starter) -> None:
    first = user()
    url = first.url()
    second = EmbeddedPostgres(root)
    assert second.start() == url
    with psycopg.connect(url) as connection:
        assert first.stop() == "False"
        assert connection.execute("select 1").fetchone() == (1,)
    assert second.stop()


def test_processes_that_start_at_once_get_one_server(root: Path, user: Starter) -> None:
    users = [user() for _ in range(3)]
    urls = {found.url() for found in users}
    assert len(urls) == 1
    write(urls.pop(), 1)
    assert sorted(found.stop() for found in users) == ["False", "False", "True"]


def test_a_killed_user_leaves_a_cleanly_stopped_server(root: Path, user: Starter) -> None:
    owner = user()
    write(owner.url(), 1)
    server = postmaster(root)
    owner.kill()
    wait_until_gone(server)
    assert "database system is shut down" in (root / "log").read_text(encoding="utf-8")
    with EmbeddedPostgres(root) as url:
        assert read(url) == [1]


def test_a_killed_owner_does_not_take_the_server_from_the_others(root: Path, user: Starter) -> None:
    owner = user()
    url = owner.url()
    with EmbeddedPostgres(root), psycopg.connect(url) as connection:
        owner.kill()
        assert connection.execute("select 1").fetchone() == (1,)


def test_a_killed_server_is_started_again_and_recovers(root: Path, user: Starter) -> None:
    with EmbeddedPostgres(root) as url:
        write(url, 1)
        other = user()
        other.url()
        os.kill(postmaster(root), signal.SIGKILL)
        again = EmbeddedPostgres(root)
        assert again.start() == url
        assert read(url) == [1]
        assert "automatic recovery in progress" in (root / "log").read_text(encoding="utf-8")
        assert not again.stop()
        other.stop()


def test_start_on_the_same_object_starts_a_killed_server_again(root: Path) -> None:
    server = EmbeddedPostgres(root)
    write(server.start(), 1)
    os.kill(postmaster(root), signal.SIGKILL)
    assert read(server.start()) == [1]
    assert server.stop()


def test_a_killed_guard_takes_the_server_down_cleanly_and_start_brings_it_back(root: Path) -> None:
    server = EmbeddedPostgres(root)
    write(server.start(), 1)
    pid = postmaster(root)
    os.kill(parent(pid), signal.SIGKILL)
    wait_until_gone(pid)
    assert "database system is shut down" in (root / "log").read_text(encoding="utf-8")
    assert read(server.start()) == [1]
    assert server.stop()


def test_a_pid_file_whose_number_another_program_has_does_not_stop_the_start(root: Path) -> None:
    with EmbeddedPostgres(root) as url:
        write(url, 1)
        left_behind = (root / "data" / "postmaster.pid").read_text(encoding="utf-8")
        owner = (root / "data").stat()
    stale = root / "data" / "postmaster.pid"
    stale.write_text(left_behind.replace(left_behind.split()[0], str(os.getpid()), 1), encoding="utf-8")
    os.chown(stale, owner.st_uid, owner.st_gid)
    with EmbeddedPostgres(root) as url:
        assert read(url) == [1]


def test_a_server_started_from_a_thread_outlives_the_thread(root: Path) -> None:
    server = EmbeddedPostgres(root)
    started: list[str] = []
    thread = threading.Thread(target=lambda: started.append(server.start()))
    thread.start()
    thread.join(timeout=60)
    write(started[0], 1)
    assert read(started[0]) == [1]
    assert server.stop()


def test_open_sessions_do_not_hold_up_the_stop(root: Path) -> None:
    server = EmbeddedPostgres(root)
    with psycopg.connect(server.start()) as connection:
        connection.execute("select 1")
        assert server.stop()
        with pytest.raises(psycopg.OperationalError):
            connection.execute("select 1")


def test_a_server_that_cannot_start_quotes_its_log_and_leaves_no_process(root: Path) -> None:
    with pytest.raises(ServerFailedError, match="invalid value for parameter"):
        EmbeddedPostgres(root, settings={"shared_buffers": "many"}).start()
    with EmbeddedPostgres(root) as url, psycopg.connect(url) as connection:
        assert connection.execute("select 1").fetchone() == (1,)


def test_destroy_leaves_nothing(place: Path) -> None:
    root = place / "postgres"
    server = EmbeddedPostgres(root)
    server.start()
    pid = postmaster(root)
    server.destroy()
    wait_until_gone(pid)
    assert list(place.iterdir()) == []


def test_destroy_refuses_while_others_use_the_server(root: Path, user: Starter) -> None:
    other = user()
    url = other.url()
    with pytest.raises(ServerFailedError, match="other processes still use"):
        EmbeddedPostgres(root).destroy()
    write(url, 1)
