"""Ends a worker whose starting process is gone, killed or not: the far end of its standard input closes then."""

import contextlib
import os
import signal
import threading
import time

LAST_WORDS_S = 5.0
"""For the orderly stop; a worker that is stuck ends all the same."""


def end_with_parent() -> None:
    """Watch from a thread, which a busy event loop cannot hold up."""
    threading.Thread(target=_watch, name="parent watch", daemon=True).start()


def _watch() -> None:
    with contextlib.suppress(OSError):
        while os.read(0, 1024):
            pass
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(LAST_WORDS_S)
    os._exit(1)
