"""A transaction pooler in front of a test server: pgbouncer on loopback, with fewer server connections than clients."""

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from agentic.local.postgres.account import service_account

SERVER_CONNECTIONS = 2
_START_S = 30.0


def binary() -> str | None:
    """Where pgbouncer is; systems keep it beside the daemons."""
    return shutil.which("pgbouncer", path=f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/usr/local/sbin")


@contextmanager
def transaction_pooler(server: str, *, server_connections: int = SERVER_CONNECTIONS) -> Iterator[str]:
    """pgbouncer in transaction mode before a server, until the block ends.

    Args:
        server: URL of any of its databases, for a superuser with a password.
        server_connections: how many the pooler opens for a database.

    Yields:
        The URL with the pooler in the server's place; any database of the server may be named in it.
    """
    program = binary()
    if program is None:
        raise FileNotFoundError("there is no pgbouncer here; install your system's package of that name")
    to = {key: str(value) for key, value in conninfo_to_dict(server).items()}
    folder = Path(tempfile.mkdtemp(prefix="agentic-pooler-"))
    account = service_account()
    port = _free_port()
    (folder / "users.txt").write_text(f'"{to["user"]}" "{to["password"]}"\n')
    (folder / "pgbouncer.ini").write_text(
        f"""
[databases]
* = host={to["host"]} port={to.get("port", "5432")}

[pgbouncer]
pool_mode = transaction
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = plain
auth_file = {folder}/users.txt
default_pool_size = {server_connections}
max_client_conn = 500
admin_users = {to["user"]}
ignore_startup_parameters = extra_float_digits
"""
    )
    for path in (folder, *folder.iterdir()):
        account.own(path)  # the embedded server's socket is its account's alone; pgbouncer refuses to be root besides
    command = [program, "--quiet", str(folder / "pgbouncer.ini")]
    if account.switch:
        command[1:1] = ["--user", pwd.getpwuid(account.uid).pw_name]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        url = make_url(to, port)
        _wait(url, process, folder / "log")
        yield url
    finally:
        process.terminate()
        process.wait(timeout=30)
        shutil.rmtree(folder)


def make_url(to: dict[str, str], port: int) -> str:
    """The URL of the same database and user on a port of this machine."""
    return f"postgresql://{to['user']}:{to['password']}@127.0.0.1:{port}/{to['dbname']}"


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    end = time.monotonic() + _START_S
    while True:
        try:
            psycopg.connect(make_conninfo(url, connect_timeout=2)).close()
        except psycopg.OperationalError as error:
            if process.poll() is not None or time.monotonic() > end:
                raise RuntimeError(f"pgbouncer does not serve: {log.read_text(errors='replace')}") from error
            time.sleep(0.02)
        else:
            return
