"""The environment of a server that runs as our child: built from nothing, never inherited (T4). Pure.

A worker's environment holds the database's URL and every provider's key, and the default of each call that starts a process is to
hand all of it on.
"""

from collections.abc import Mapping
from typing import Final

DEFAULT_PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_LOCALE: Final = "C.UTF-8"
BASE_NAMES: Final = frozenset({"PATH", "HOME", "TMPDIR", "LANG", "LC_ALL"})
"""What every child gets, with values made here. No credential and no configured variable may stand under one of these names."""


def child_environment(
    *, home: str, path: str, variables: Mapping[str, str], credential: Mapping[str, str]
) -> dict[str, str]:
    """Everything the child will find in its environment.

    Args:
        home: an existing folder of the child's own; temporary files go there too.
        path: where it finds programs.
        variables: plain settings of the deployment's configuration.
        credential: the one variable that holds the secret, or nothing.
    """
    # LC_ALL is there so that a Python interpreter on the way does not add a locale of its own to what it passes on
    base = {"PATH": path, "HOME": home, "TMPDIR": home, "LANG": _LOCALE, "LC_ALL": _LOCALE}
    return {**variables, **credential, **base}
