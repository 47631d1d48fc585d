"""``python -m agentic``: the command line."""

import sys

from agentic.cli import main

if __name__ == "__main__":
    sys.exit(main())
