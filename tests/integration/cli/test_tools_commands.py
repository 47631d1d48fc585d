"""The commands about tools and members, as a person at a terminal has them."""

from typing import TYPE_CHECKING
from uuid import uuid4

import pytest

if TYPE_CHECKING:
    from tests.integration.cli.conftest import Seed, Shell

pytestmark = pytest.mark.timeout(300)  # each command is a process of its own

APP = """
from typing import Annotated
from pydantic import BaseModel, Field
from agentic.bootstrap import App
from agentic.runtime.agent.definition import AgentDefinition
from agentic.services.tools.context import CallContext
from agentic.services.tools.declarations import internal_tool

class Letter(BaseModel):
    phone: Annotated[str, Field(json_schema_extra={"format": "phone"})]

class Kept(BaseModel):
    id: str

@internal_tool("letters.keep", "Keeps a letter.", side_effects="write", repeatable=False)
async def keep(ctx: CallContext, args: Letter) -> Kept:
    return Kept(id="1")

@internal_tool("mcp.keep", " ", side_effects="write", metered=True, policy_facts=("known",))
async def broken(ctx: CallContext, args: Letter) -> Kept:
    return Kept(id="1")

def agent(**fields):
    return AgentDefinition(name="scribe", instructions="Write.", model="m", **fields)

sound = App(tools=[keep], agents=[agent(tools=("letters.keep", "mcp.post.search"))])
faulty = App(tools=[keep, broken], agents=[agent(tools=("letters.keep", "letters.burn"), maximum_class="read")])
"""


def test_an_app_is_checked_whole_and_without_a_database(shell: "Shell") -> None:
    (shell.folder / "letters_app.py").write_text(APP)
    sound = shell("tools", "validate", "--app", "letters_app:sound", "--json")
    assert (sound.code, sound.err) == (0, "")
    assert (sound.value["tools"], sound.value["agents"], sound.value["faults"]) == (["letters.keep"], ["scribe"], [])
    assert sound.value["notes"] == [
        "letters.keep: the format 'phone' of the input schema is not enforced (#/properties/phone)"
    ]

    faulty = shell("tools", "validate", "--app", "letters_app:faulty", "--json")
    assert faulty.code == 1
    for words in (
        "mcp.keep: the domain 'mcp' is reserved",
        "mcp.keep: the description is empty",
        "mcp.keep: a metered tool declares cost_bound",
        "mcp.keep: nothing finds out the fact 'known'",
        "agent scribe may not have letters.keep: it is a write, and at most read is allowed",
        "agent scribe names letters.burn, which is no tool of this app",
    ):
        assert any(fault.startswith(words) for fault in faulty.value["faults"]), words

    told = shell("tools", "validate", "--app", "letters_app:faulty")
    assert told.code == 1
    assert "fault: mcp.keep: the description is empty" in told.out
    assert "2 tools, 1 agents" in told.out
    assert shell("tools", "validate", "--app", "letters_app:none").code == 1
    assert shell("tools", "validate").code == 2


def test_a_tool_is_switched_released_and_shown_with_who_did_it(seed: "Seed", shell: "Shell") -> None:
    admin = str(uuid4())
    made = shell("members", "put", admin, "admin", "--json")
    assert (made.code, made.value["role"]) == (0, "admin")
    members = {member["user_id"]: member["role"] for member in shell("members", "list", "--json").value}
    assert members == {admin: "admin", str(seed.operator): "operator", str(seed.approver): "approver"}
    assert admin in shell("members", "list").out
    assert shell("members", "put", admin, "emperor").code == 2

    refused = shell("tools", "disable", "letters.post", "--as", str(seed.operator))
    assert (refused.code, "role admin" in refused.err) == (1, True)
    off = shell("tools", "disable", "letters.post", "--as", admin, "--json")
    assert off.value == {"tool": "letters.post", "enabled": False, "changed": True}
    assert "already" in shell("tools", "disable", "letters.post", "--as", admin).err
    assert "disabled" in shell("tools", "list").out
    assert shell("tools", "enable", "letters.post", "--as", admin).code == 0
    unknown = shell("tools", "disable", "letters.psot", "--as", admin)
    assert (unknown.code, "agentic tools list" in unknown.err) == (1, True)

    for misused in (
        [],
        ["--deprecate", "--revoke", "--in-flight", "finish"],
        ["--revoke"],
        ["--deprecate", "--in-flight", "finish"],
    ):
        assert shell("tools", "release", "letters.post", "1", *misused).code == 2, misused
    assert shell("tools", "release", "letters.post", "1", "--deprecate", "--as", admin).code == 0
    revoked = shell(
        "tools", "release", "letters.post", "1", "--revoke", "--in-flight", "finish", "--as", admin, "--json"
    )
    assert revoked.value == {
        "tool": "letters.post",
        "version": 1,
        "release": "revoked",
        "in_flight": "finish",
        "changed": True,
    }
    back = shell("tools", "release", "letters.post", "1", "--deprecate", "--as", admin)
    assert (back.code, "not taken back" in back.err) == (1, True)

    shown = shell("tools", "show", "letters.post", "--json").value
    assert (shown["release"], shown["in_flight"], shown["enabled"]) == ("revoked", "finish", True)
    assert [change["change"] for change in shown["changes"]] == ["revoked", "deprecated", "enabled", "disabled"]
    assert {change["changed_by"] for change in shown["changes"]} == {admin}
    sheet = shell("tools", "show", "letters.post")
    assert sheet.code == 0
    for text in ("enabled, revoked (finish)", "c1:", f"disabled by {admin}", "input_schema"):
        assert text in sheet.out


@pytest.mark.guarantee("D2")
def test_a_tool_is_taken_from_an_agent_and_restored_with_who_did_it(seed: "Seed", shell: "Shell") -> None:
    admin = str(uuid4())
    assert shell("members", "put", admin, "admin").code == 0
    [given] = shell("grants", "list", "--json").value
    assert (given["definition"], given["tool"], given["state"]) == ("scribe", "letters.post", "active")
    assert given["granted_by"] == str(seed.approver)

    refused = shell("grants", "revoke", "scribe", "letters.post", "--as", str(seed.operator))
    assert (refused.code, "role admin" in refused.err) == (1, True)
    unknown = shell("grants", "revoke", "scrbe", "letters.post", "--as", admin)
    assert (unknown.code, "agentic grants list" in unknown.err) == (1, True)
    taken = shell("grants", "revoke", "scribe", "letters.post", "--as", admin, "--json")
    assert taken.value == {"definition": "scribe", "tool": "letters.post", "state": "revoked", "changed": True}
    assert "already" in shell("grants", "revoke", "scribe", "letters.post", "--as", admin).err
    [grant] = shell("grants", "list", "scribe", "--json").value
    assert (grant["state"], grant["changed_by"]) == ("revoked", admin)
    assert "revoked" in shell("grants", "list").out
    assert "no definition" not in shell("grants", "list", "nobody").out

    assert shell("grants", "restore", "scribe", "letters.post", "--as", admin).code == 0
    [grant] = shell("grants", "list", "--json").value
    assert grant["state"] == "active"
    elsewhere = shell("grants", "list", "--organization", str(uuid4()), "--json")
    assert elsewhere.value == []
