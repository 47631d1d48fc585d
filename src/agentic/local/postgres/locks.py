"""File locks between processes. An open file holds them: however its holder dies, the kernel drops the lock."""

import os
import sys
import time
from pathlib import Path

if sys.platform != "win32":  # `binaries.py` refuses Windows, with a sentence, before a lock is needed
    import fcntl

_POLL_S = 0.005


def try_lock(path: Path, *, shared: bool = False) -> int | None:
    """Opens `path` and locks it without waiting.

    Returns:
        The file descriptor that holds the lock until it is closed, by this process and by everyone who inherited it;
        None when somebody else holds the lock, or the file was replaced meanwhile.

    Raises:
        OSError: The file cannot be opened.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        # a folder removed while we opened the file leaves us a lock that nobody else sees
        if path.stat().st_ino == os.fstat(descriptor).st_ino:
            return descriptor
    except (BlockingIOError, FileNotFoundError):
        pass
    except BaseException:
        os.close(descriptor)
        raise
    os.close(descriptor)
    return None


def wait_for_lock(path: Path, *, shared: bool = False, timeout_s: float) -> int | None:
    """`try_lock` until it succeeds; None when the time is over."""
    deadline = time.monotonic() + timeout_s
    while (descriptor := try_lock(path, shared=shared)) is None:
        if time.monotonic() > deadline:
            return None
        time.sleep(_POLL_S)
    return descriptor
