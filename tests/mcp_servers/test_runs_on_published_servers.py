"""Runs whose tools are a published server's: read, asked about, written once, and known afterwards."""

import json
from pathlib import Path

import pytest

from agentic.runtime.agent.script import Turn
from agentic.services.mcp.config import Classification
from agentic.services.tools.models import IdempotencyClass, Risk, SideEffects
from agentic.testing import Call, Calls, Say, harness
from tests.integration.mcp.scripted_http import Scripted
from tests.mcp_servers.launching import config_of
from tests.mcp_servers.servers import SERVERS

READ = Classification(side_effects=SideEffects.READ, risk=Risk.LOW, idempotency=IdempotencyClass.READ_ONLY)
pytestmark = [pytest.mark.usefixtures("nothing_left"), pytest.mark.timeout(180)]


async def test_a_run_reads_a_file_and_writes_one_after_a_person_said_yes(
    database: str, folder: Path, page: Scripted
) -> None:
    (filesystem,) = [each for each in SERVERS if each.name == "filesystem"]
    config = config_of(filesystem, folder, page).model_copy(update={"per_tool": {"read_text_file": READ}})
    copied = folder / "copy.txt"
    script: list[Turn] = [
        Calls([Call("mcp.filesystem.read_text_file", {"path": str(folder / "note.txt")})]),
        Calls([Call("mcp.filesystem.write_file", {"path": str(copied), "content": "Ida likes tea."})]),
        Say("Copied."),
    ]
    async with harness(tools=[], script=script, servers=[config], database_url=database) as h:
        run_id = await h.start()
        parked = await h.settle(run_id)
        assert [each.tool for each in parked.pending] == ["mcp.filesystem.write_file"] and not copied.exists()
        await h.decide(run_id)
        assert (await h.settle(run_id)).state == "succeeded" and copied.read_text() == "Ida likes tea."
        texts = [text for role, text in await h.messages(run_id) if role == "tool"]
        tree = await h.tree(run_id)
    read = json.loads(texts[0])["external"]["data"]
    assert read["content"] == [{"type": "text", "text": "Ida likes tea.\n"}]
    assert tree.run["context_trust"] == "external" and [each["kind"] for each in tree.effects] == ["completed"]
