"""Keeps what stays on this machine from being sent to a proxy."""

import os


def keep_off_proxies() -> None:
    """Name the loopback addresses in ``NO_PROXY``: the functions' SDK asks the environment for a proxy, also for this machine."""
    for name in ("NO_PROXY", "no_proxy"):
        listed = os.environ.get(name, "")
        os.environ[name] = ",".join(part for part in (listed, "127.0.0.1", "localhost") if part)
