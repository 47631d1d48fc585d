"""The protocol's own conformance scenarios for clients, played against a session of ours.

Which are played and which are not is written down in full, so that a scenario that appears with another version has to be decided on.
"""

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.mcp_servers.servers import CONFORMANCE, LOOPBACK, ROOT, search_path

pytestmark = pytest.mark.timeout(120)

PLAYED = (
    "initialize",
    "tools_call",
    "sse-retry",
    "json-schema-2020-12-preservation",
    "json-schema-ref-no-deref",
    "auth/client-credentials-basic",
)
DECLINED = (
    # each begins with a server that answers 401 and points to a browser's consent
    *(f"auth/{name}" for name in ("metadata-default", "metadata-var1", "metadata-var2", "metadata-var3", "basic-cimd")),
    *(f"auth/{name}" for name in ("scope-from-www-authenticate", "scope-from-scopes-supported", "pre-registration")),
    *(f"auth/token-endpoint-auth-{name}" for name in ("basic", "post", "none")),
)
"""Consent of a person in a browser: a session is not opened, and nothing that the server names is fetched."""
LEFT_OUT = {
    "elicitation-sep1034-client-defaults": "forms are refused",
    "auth/scope-omitted-when-undefined": "a variant of the consent that is declined",
    "auth/scope-step-up": "a variant of the consent that is declined",
    "auth/scope-retry-limit": "a variant of the consent that is declined",
    "auth/resource-mismatch": "a variant of the consent that is declined",
    "auth/offline-access-scope": "a variant of the consent that is declined",
    "auth/offline-access-not-supported": "a variant of the consent that is declined",
    "auth/2025-03-26-oauth-metadata-backcompat": "a variant of the consent that is declined",
    "auth/2025-03-26-oauth-endpoint-fallback": "a variant of the consent that is declined",
    "auth/authorization-server-migration": "a variant of the consent that is declined",
    "auth/iss-supported": "a variant of the consent that is declined",
    "auth/iss-not-advertised": "a variant of the consent that is declined",
    "auth/iss-supported-missing": "a variant of the consent that is declined",
    "auth/iss-wrong-issuer": "a variant of the consent that is declined",
    "auth/iss-unexpected": "a variant of the consent that is declined",
    "auth/iss-normalized": "a variant of the consent that is declined",
    "auth/metadata-issuer-mismatch": "a variant of the consent that is declined",
    "auth/client-credentials-jwt": "a client is known by its secret; keys are no scheme here",
    "auth/enterprise-managed-authorization": "no scheme here",
    "auth/dpop": "no scheme here",
    "auth/dpop-nonce": "no scheme here",
    "auth/wif-jwt-bearer": "no scheme here",
    "request-metadata": "of the protocol without a handshake, which is not spoken",
    "sep-2322-client-request-state": "of the protocol without a handshake, which is not spoken",
    "http-standard-headers": "of the protocol without a handshake, which is not spoken",
    "http-custom-headers": "of the protocol without a handshake, which is not spoken",
    "http-invalid-tool-headers": "of the protocol without a handshake, which is not spoken",
    "sep-2640-client-no-prefetch": "skills are not read from servers",
    "sep-2640-client-verify-digest": "skills are not read from servers",
    "sep-2640-client-verify-size": "skills are not read from servers",
    "sep-2640-client-verify-frontmatter": "skills are not read from servers",
}


async def test_every_scenario_for_clients_is_played_or_left_out_for_a_reason() -> None:
    said, code = await tool("list")
    _, _, clients = said.partition("Client scenarios")
    clients, _, _ = clients.partition("Authorization server scenarios")
    names = {line.split()[1] for line in clients.splitlines() if line.strip().startswith("- ")}
    assert code == 0 and names == {*PLAYED, *DECLINED, *LEFT_OUT}
    assert len(names) == len(PLAYED) + len(DECLINED) + len(LEFT_OUT)


@pytest.mark.parametrize("scenario", PLAYED)
async def test_a_scenario_that_applies_is_passed_without_a_warning(scenario: str, tmp_path: Path) -> None:
    said, code = await play(scenario, tmp_path)
    found = checks(tmp_path)
    assert code == 0, said
    assert {each["status"] for each in found} <= {"SUCCESS", "INFO", "SKIPPED"}, said
    assert any(each["status"] == "SUCCESS" for each in found)


@pytest.mark.parametrize("scenario", DECLINED)
async def test_consent_in_a_browser_is_declined_and_nothing_is_fetched_that_the_server_names(
    scenario: str, tmp_path: Path
) -> None:
    await play(scenario, tmp_path)
    silent = scenario in ("auth/metadata-var1", "auth/metadata-var2")  # their 401 names no address
    assert json.loads(left(tmp_path, "stdout.txt")) == {"trouble": "unauthorized" if silent else "auth_unsupported"}
    asked = [
        each["details"] for each in checks(tmp_path) if each["id"] in ("incoming-request", "incoming-auth-request")
    ]
    assert {(each["method"], each.get("mcpMethod")) for each in asked} == {("POST", "initialize")}


async def play(scenario: str, folder: Path) -> tuple[str, int]:
    """Have the tool play a scenario; what it wrote and its exit code."""
    client = f"{sys.executable} -m tests.mcp_servers.conformance_client"
    return await tool("client", "--command", client, "--scenario", scenario, "--output-dir", str(folder))


def checks(folder: Path) -> list[dict[str, Any]]:
    """What the tool looked at."""
    loaded: list[dict[str, Any]] = json.loads(left(folder, "checks.json"))
    return loaded


def left(folder: Path, name: str) -> str:
    """A file that the tool left, wherever it put it."""
    (found,) = folder.rglob(name)
    return found.read_text(encoding="utf-8")


async def tool(*arguments: str) -> tuple[str, int]:
    """Run the conformance tool to its end."""
    own = [str(found) for found in CONFORMANCE.glob("node-linux-*/bin/node")]
    process = await asyncio.create_subprocess_exec(
        *(own or ["node"]),
        *("--require", str(LOOPBACK), str(CONFORMANCE / ".bin" / "conformance"), *arguments),
        cwd=ROOT,
        env={**os.environ, "PATH": search_path(), "PYTHONPATH": str(ROOT)},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    try:
        said, _ = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    assert process.returncode is not None
    return said.decode(errors="replace"), process.returncode
