"""The commands about rules, as a person at a terminal has them."""

import json
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import psycopg
import pytest

if TYPE_CHECKING:
    from tests.integration.cli.conftest import Seed, Shell

pytestmark = pytest.mark.timeout(300)  # each command is a process of its own

RULE = {
    "name": "letters-abroad",
    "effect": "require_approval",
    "tool": "letters.*",
    "condition": "!args.to.endsWith('.example>')",
    "four_eyes": True,
    "reason": "letters abroad cost postage",
}
APP = """
from pydantic import BaseModel
from agentic.bootstrap import App
from agentic.services.policy import Fact
from agentic.services.tools.context import CallContext
from agentic.services.tools.declarations import internal_tool

class Letter(BaseModel):
    to: str

class Kept(BaseModel):
    id: str

@internal_tool("letters.keep", "Keeps a letter.", side_effects="write", risk="low", repeatable=False, policy_facts=("known",))
async def keep(ctx: CallContext, args: Letter) -> Kept:
    return Kept(id="1")

async def known(ctx: CallContext, args: BaseModel) -> bool:
    return args.to == "per"

app = App(tools=[keep], facts=[Fact(name="known", type="bool", resolve=known)])
"""


def write(shell: "Shell", value: Any, name: str = "rules.json") -> str:
    (shell.folder / name).write_text(json.dumps(value))
    return name


@pytest.fixture
def admin(database: str, seed: "Seed") -> str:
    user = uuid4()
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute(
            "insert into agent.members (organization_id, user_id, role) values (%s, %s, 'admin')",
            (seed.organization, user),
        )
    return str(user)


def test_a_rule_is_saved_listed_explained_and_retired(admin: str, shell: "Shell") -> None:
    file = write(shell, RULE)
    saved = shell("policy", "save", file, "--as", admin, "--json")
    assert (saved.code, saved.err) == (0, "")
    assert [(rule["rule_id"], rule["version"]) for rule in saved.value] == [("rule:letters-abroad", 1)]

    listed = shell("policy", "list", "--json").value
    assert [rule["rule_id"] for rule in listed] == [
        "rule:packaged/crm-bookkeeping", "rule:letters-abroad", "rule:packaged/open-egress",
    ]  # fmt: skip
    table = shell("policy", "list")
    for text in ("rule:letters-abroad", "require_approval, four eyes", "!args.to.endsWith('.example>')"):
        assert text in table.out

    arguments = ["policy", "explain", "letters.post", '{"to": "Per <per@fjord.test>"}']
    told = shell(*arguments, "--json").value
    assert (told["effect"], told["rule_id"], told["four_eyes"]) == ("require_approval", "rule:letters-abroad", True)
    shown = shell(*arguments, "--trust", "external")
    for text in (
        "require_approval, by a second person",
        "rule:letters-abroad, version 1",
        "letters abroad cost postage",
        "floor.external",
    ):
        assert text in shown.out
    home = shell("policy", "explain", "letters.post", '{"to": "Per <per@fjord.example>"}', "--json").value
    assert (home["effect"], home["rule_id"]) == ("require_approval", "matrix.send")

    assert "retired after version 1" in shell("policy", "retire", "letters-abroad", "--as", admin).err
    assert "letters-abroad" not in shell("policy", "list").out
    gone = shell("policy", "retire", "letters-abroad", "--as", admin)
    assert (gone.code, gone.out) == (1, "")
    assert "there is no rule 'letters-abroad'" in gone.err


def test_a_rule_that_does_not_fit_is_named_with_its_fault_and_not_saved(admin: str, shell: "Shell") -> None:
    for fields, words in (
        ({"condition": "args.recipient == 'x'"}, "letters.post: it has no argument recipient; it has to"),
        ({"condition": "args.to > 5"}, "no matching overload for '_>_' applied to '(string, int)'"),
        ({"condition": "facts.known"}, "it does not declare the fact known"),
        (
            {"effect": "deny"},
            "rule 1 of rules.json (letters-abroad): the rule: four_eyes belongs to a require_approval rule",
        ),
        ({"colour": "red"}, "colour: Extra inputs are not permitted"),
    ):
        file = write(shell, {**RULE, **fields})
        refused = shell("policy", "save", file, "--as", admin)
        assert (refused.code, refused.out) == (1, ""), fields
        assert words in refused.err
        assert "Traceback" not in refused.err
    assert "letters-abroad" not in shell("policy", "list").out
    checked = shell("policy", "lint", write(shell, {**RULE, "condition": "args.to > 5"}), "--json")
    assert (checked.code, [finding["severity"] for finding in checked.value]) == (1, ["error"])
    assert shell("policy", "lint", write(shell, RULE)).code == 0


def test_whoever_is_no_admin_changes_nothing_and_the_platforms_rules_take_the_database_itself(
    seed: "Seed", shell: "Shell"
) -> None:
    file = write(shell, [RULE])
    refused = shell("policy", "save", file, "--as", str(seed.operator))
    assert refused.code == 1
    assert "takes the role admin" in refused.err
    saved = shell("policy", "save", file, "--platform", "--json")
    assert [rule["rule_id"] for rule in saved.value] == ["rule:platform/letters-abroad"]
    assert (
        shell("policy", "list", "--organization", str(uuid4()), "--json").value[1]["rule_id"]
        == "rule:platform/letters-abroad"
    )


def test_with_the_app_its_own_facts_are_typed_and_found_out(admin: str, shell: "Shell") -> None:
    (shell.folder / "keeping.py").write_text(APP)
    file = write(shell, {"name": "strangers", "effect": "deny", "tool": "letters.keep", "condition": "!facts.known"})
    assert shell("policy", "save", file, "--app", "keeping:app", "--as", admin).code == 0
    explain = ["policy", "explain", "letters.keep", "--app", "keeping:app", "--json"]
    for to, effect in (("per", "allow"), ("ada", "deny")):
        told = shell(*explain, json.dumps({"to": to})).value
        assert (told["effect"], told["facts"]) == (effect, {"known": to == "per"})
    told = shell(*explain, '{"to": "ada"}', "--facts", '{"known": true}').value
    assert told["effect"] == "allow"
    failing = shell(*explain, '{"to": "ada"}', "--facts", '{"known": "yes"}').value
    assert failing["effect"] == "deny"
    assert failing["facts"] == {"known": {"failed": "the fact known is declared as bool and came as str"}}
