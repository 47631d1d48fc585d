"""The SDK is an extra and takes most of a second to import: whoever configures, lists and offers tools does without it."""

import pkgutil
import subprocess
import sys

import pytest

import agentic.services.mcp

NEEDS_THE_SDK = {"http", "session", "stdio", "streams"}


@pytest.mark.parametrize(
    "module", sorted({each.name for each in pkgutil.iter_modules(agentic.services.mcp.__path__)} - NEEDS_THE_SDK)
)
def test_a_module_that_talks_to_nobody_imports_without_the_sdk(module: str) -> None:
    program = f"import sys, agentic.services.mcp.{module}; sys.exit('mcp' in sys.modules or 'httpx2' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
