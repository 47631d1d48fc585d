"""`python -m tests.mcp_servers.install` puts the servers that nobody here wrote into `.mcp-servers/`; does nothing when they are there.

Each folder in there is one environment with a list of what it was made from. One that was made from something else, or was cut off, is made
anew. Programs of packages do not run while they are installed.
"""

import json
import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

from tests.mcp_servers.servers import CACHE, CONFORMANCE_PACKAGE, EXTRA, SERVERS

_NODE_OF_THE_TOOL: Final = 22
_NODE_VERSION: Final = "22.23.5"
_ARCHITECTURES: Final = {"x86_64": "x64", "aarch64": "arm64"}


def main() -> None:
    """Install what is missing."""
    if shutil.which("npm") is None:
        sys.exit("There is no npm here. Install Node.js 20 or later, which brings it, then run the same command again.")
    for folder in sorted({each.environment for each in SERVERS}):
        wanted = [*(each.package for each in SERVERS if each.environment == folder), *EXTRA.get(folder, ())]
        _make(CACHE / folder, wanted)
    _make(CACHE / "conformance", [CONFORMANCE_PACKAGE, *_newer_node()])


def _make(folder: Path, wanted: list[str]) -> None:
    made_from = folder / "made-from.json"
    if made_from.exists() and json.loads(made_from.read_text(encoding="utf-8")) == wanted:
        return
    print(f"installing {len(wanted)} packages into {folder.relative_to(CACHE.parent)}", file=sys.stderr, flush=True)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    if folder.name.startswith("python"):
        _run([sys.executable, "-m", "venv", str(folder)])
        _run([str(folder / "bin" / "python"), "-m", "pip", "install", "-qq", "--disable-pip-version-check", *wanted])
    else:
        quiet = ("--no-save", "--no-package-lock", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error")
        _run(["npm", "install", "--prefix", str(folder), *quiet, *wanted])
    made_from.write_text(json.dumps(wanted), encoding="utf-8")


def _newer_node() -> list[str]:
    """The package of a Node.js that runs the conformance tool, where the one that is installed is too old for it."""
    said = subprocess.run(["node", "--version"], capture_output=True, text=True, check=True).stdout
    if int(said.strip().lstrip("v").partition(".")[0]) >= _NODE_OF_THE_TOOL:
        return []
    architecture = _ARCHITECTURES.get(platform.machine())
    if sys.platform != "linux" or architecture is None:
        sys.exit(f"The conformance tool needs Node.js {_NODE_OF_THE_TOOL} or later, and this is {said.strip()}.")
    return [f"node-linux-{architecture}@{_NODE_VERSION}"]


def _run(command: list[str]) -> None:
    settings = {
        name: value for name, value in os.environ.items() if name not in ("PIP_USER", "PIP_TARGET", "PYTHONPATH")
    }
    if subprocess.run(command, env={**settings, "PIP_ROOT_USER_ACTION": "ignore"}, check=False).returncode != 0:
        sys.exit("The servers could not be installed; see the message above, then run the same command again.")


if __name__ == "__main__":
    main()
