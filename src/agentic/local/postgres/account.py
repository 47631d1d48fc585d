"""Under which account Postgres runs, and whether that account can reach a folder.

Postgres refuses to run as root. A root process therefore starts it under an account that is already there; no account
is created and no folder outside the instance has its mode changed.
"""

import os
import stat
import sys
from dataclasses import dataclass
from pathlib import Path

from agentic.local.postgres.errors import ServiceAccountError

if sys.platform != "win32":
    import pwd

_ACCOUNTS = ("postgres", "nobody")


@dataclass(frozen=True, kw_only=True)
class ServiceAccount:
    """Who runs the server.

    Attributes:
        uid: Its user.
        gid: Its group.
        switch: True when we are root and have to change to it; False when it is who we are.
    """

    uid: int
    gid: int
    switch: bool

    def reaches(self, path: Path) -> bool:
        """Whether the account may enter (or run) `path` and every folder above it, by mode bits."""
        return not self.switch or all(self._may_enter(place.stat()) for place in (path, *path.parents))

    def _may_enter(self, found: os.stat_result) -> bool:
        if found.st_uid == self.uid:
            return bool(found.st_mode & stat.S_IXUSR)
        if found.st_gid == self.gid:
            return bool(found.st_mode & stat.S_IXGRP)
        return bool(found.st_mode & stat.S_IXOTH)

    def own(self, path: Path) -> None:
        """Hands a file or folder of the instance to the account."""
        if self.switch:
            os.chown(path, self.uid, self.gid)


def service_account(data_dir: Path | None = None) -> ServiceAccount:
    """The account for a data folder: its owner when we are root and it exists, else `postgres`, else `nobody`.

    Args:
        data_dir: An existing data folder, None when it is still to be made.

    Raises:
        ServiceAccountError: Root without an account to change to, or a user id that the machine has no entry for.
    """
    if os.geteuid() == 0:
        return _account_for_root(data_dir)
    try:
        pwd.getpwuid(os.geteuid())
    except KeyError:
        raise ServiceAccountError(
            f"the user id {os.geteuid()} has no entry in /etc/passwd, and Postgres needs one to create its data. "
            "Add an entry for it, run under another user, or set DATABASE_URL to a database of your own."
        ) from None
    return ServiceAccount(uid=os.geteuid(), gid=os.getegid(), switch=False)


def _account_for_root(data_dir: Path | None) -> ServiceAccount:
    if data_dir is not None:
        owner = data_dir.stat()
        if owner.st_uid != 0:
            return ServiceAccount(uid=owner.st_uid, gid=owner.st_gid, switch=True)
    for name in _ACCOUNTS:
        try:
            found = pwd.getpwnam(name)
        except KeyError:
            continue
        return ServiceAccount(uid=found.pw_uid, gid=found.pw_gid, switch=True)
    raise ServiceAccountError(
        f"Postgres refuses to run as root, and none of the accounts {', '.join(_ACCOUNTS)} exists to run it. "
        "Run under an ordinary user, or set DATABASE_URL to a database of your own."
    )
