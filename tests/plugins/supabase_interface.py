"""PostgREST before a test database, as Supabase runs it: the real program, on loopback, with tokens of its own secret."""

import os
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import httpx
import jwt
import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from agentic.storage.scoped_supabase import SupabaseRows
from fetch_supabase import POSTGREST

MISSING = "there is no PostgREST here; 'python scripts/fetch_supabase.py postgrest' fetches it"
MAX_ROWS = 1000
"""As hosted Supabase limits a read."""
_SECRET = "a secret of tests alone, of at least thirty-two characters"
_PASSWORD = "of-tests-alone"
_START_S = 20.0


def is_there() -> bool:
    """Whether the program was fetched."""
    return POSTGREST.is_file()


def token(claims: Mapping[str, object]) -> str:
    """A token that the interface takes."""
    return jwt.encode({**claims, "exp": int(time.time()) + 3600}, _SECRET, algorithm="HS256")


@contextmanager
def supabase_interface(database: str) -> Iterator[str]:
    """PostgREST over a database of a test server until the block ends; its URL.

    Args:
        database: URL for a superuser; past any pooler.
    """
    port, admin = _free_port(), _free_port()
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(
            [POSTGREST],
            env={
                "PATH": os.defpath,
                "PGRST_DB_URI": _as_authenticator(database),
                "PGRST_DB_SCHEMAS": "public",
                "PGRST_DB_ANON_ROLE": "anon",
                "PGRST_DB_MAX_ROWS": str(MAX_ROWS),
                "PGRST_DB_POOL": "4",
                "PGRST_JWT_SECRET": _SECRET,
                "PGRST_SERVER_HOST": "127.0.0.1",
                "PGRST_SERVER_PORT": str(port),
                "PGRST_ADMIN_SERVER_PORT": str(admin),
            },
            stdout=log,
            stderr=log,
        )
        try:
            _wait(f"http://127.0.0.1:{admin}/ready", process)
            yield f"http://127.0.0.1:{port}"
        except BaseException:
            log.seek(0)
            print(log.read().decode(errors="replace"))
            raise
        finally:
            process.terminate()
            process.wait(timeout=10)


def rows_over(interface: str, claims: Mapping[str, object]) -> SupabaseRows:
    """The adapter before it, with a token of these claims for its key."""
    return SupabaseRows(url=interface, key=token(claims), transport=WithoutGateway())


class WithoutGateway(httpx.AsyncHTTPTransport):
    """Takes off what Supabase's gateway takes off an address."""

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send the request without its prefix."""
        request.url = request.url.copy_with(raw_path=request.url.raw_path.removeprefix(b"/rest/v1"))
        return await super().handle_async_request(request)


def _as_authenticator(database: str) -> str:
    """The URL for the role that PostgREST logs in as, which has a password after this; roles belong to the whole server."""
    with psycopg.connect(database) as connection:
        connection.execute("lock table pg_catalog.pg_authid in share row exclusive mode")
        connection.execute(sql.SQL("alter role authenticator password {}").format(sql.Literal(_PASSWORD)))
    to = {key: str(value) for key, value in conninfo_to_dict(database).items()}
    return make_conninfo("", **{**to, "user": "authenticator", "password": _PASSWORD})


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait(address: str, process: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + _START_S
    while True:
        try:
            if httpx.get(address, timeout=2, trust_env=False).is_success:
                return
        except httpx.TransportError:
            pass
        if process.poll() is not None or time.monotonic() > end:
            raise RuntimeError("PostgREST does not serve; its log is above")
        time.sleep(0.02)
