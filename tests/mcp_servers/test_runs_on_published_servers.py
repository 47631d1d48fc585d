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
BY_NAME = {each.name: each for each in SERVERS}
pytestmark = [pytest.mark.usefixtures("nothing_left"), pytest.mark.timeout(180)]


async def test_a_run_reads_a_file_and_writes_one_after_a_person_said_yes(
    database: str, folder: Path, page: Scripted
) -> None:
    config = config_of(BY_NAME["filesystem"], folder, page).model_copy(update={"per_tool": {"read_text_file": READ}})
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


async def test_a_run_reads_a_resource_that_is_listed_and_none_that_is_not(
    database: str, folder: Path, page: Scripted
) -> None:
    def read(uri: str) -> Calls:
        return Calls([Call("mcp.everything.read_resource", {"uri": uri})])

    listed = "demo://resource/static/document/architecture.md"
    script: list[Turn] = [read(""), read(listed), read("demo://resource/dynamic/text/1"), Say("Read.")]
    config = config_of(BY_NAME["everything"], folder, page)
    async with harness(tools=[], script=script, servers=[config], database_url=database) as h:
        run_id = await h.start()
        assert (await h.settle(run_id)).state == "succeeded"
        texts = [text for role, text in await h.messages(run_id) if role == "tool"]
    names, contents = (json.loads(text)["external"]["data"] for text in texts[:2])
    assert listed in [each["uri"] for each in names["resources"]]
    document, text = contents["contents"]
    assert document["media_type"] == "text/markdown" and document["text_follows"] and text.startswith("#")
    assert json.loads(texts[2])["reason_code"] == "not_found"
