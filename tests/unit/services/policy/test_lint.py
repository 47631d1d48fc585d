from typing import Any, Literal

import pytest
from pydantic import BaseModel, Field

from agentic.services.policy.facts import Fact, FactRegistry
from agentic.services.policy.lint import Finding, lint
from agentic.services.policy.rules import RuleDraft
from agentic.services.tools.context import CallContext
from agentic.services.tools.models import Risk, SideEffects
from policy_world import Email, spec


class Search(BaseModel):
    """Arguments of a second tool."""

    query: str
    limit: int = Field(default=10, ge=1)
    kind: Literal["person", "company"] | None = None


async def _no(ctx: CallContext, args: BaseModel) -> bool:
    return False


FACTS = FactRegistry(
    [
        Fact(name="recipient_is_new", type="bool", resolve=_no),
        Fact(name="open_deals", type="number", resolve=_no),
        Fact(name="url_seen", type="bool", resolve=_no),
        Fact(name="account", resolve=_no),
    ]
)
TOOLS = [
    spec("email.send", arguments=Email, policy_facts=("recipient_is_new", "open_deals", "account")),
    spec("crm.search", arguments=Search, side_effects=SideEffects.READ, risk=Risk.LOW),
    spec("web.fetch", arguments=Search, side_effects=SideEffects.READ, risk=Risk.LOW, egress="open"),
]


def found(condition: str | None, tool: str = "email.send", effect: str = "deny", **fields: Any) -> list[Finding]:
    draft = RuleDraft.model_validate({"name": "r", "effect": effect, "tool": tool, "condition": condition, **fields})
    return lint(draft, TOOLS, FACTS)


@pytest.mark.parametrize(
    ("condition", "tool"),
    [
        (None, "*"),
        ("args.to.endsWith('@rival.example') && facts.open_deals > 2", "email.send"),
        ("has(args.cc) && size(args.cc) > 3", "email.send"),
        ("has(args.to) && args.to == 'x'", "*"),
        ("tool == 'email.send' // args.nope and facts.nope are words here", "*"),
        ("'args.nope' != tool && args.query != \"facts.nope\"", "crm.*"),
        ("facts.url_seen", "web.fetch"),
        ("args.limit > 20 && args['query'].matches('^[a-z]+$')", "crm.search"),
        ("now > timestamp('2026-01-01T00:00:00Z') && duration('1h') < duration('2h')", "*"),
    ],
)
def test_a_rule_that_fits_every_tool_it_speaks_about_has_no_error(condition: str | None, tool: str) -> None:
    assert [finding for finding in found(condition, tool) if finding.severity == "error"] == []


@pytest.mark.parametrize(
    ("condition", "tool", "words"),
    [
        (
            "args.recipient == 'x'",
            "email.send",
            "email.send: it has no argument recipient; it has cc, copies, subject, to, urgent",
        ),
        ("args.to == 'x'", "*", "crm.search, web.fetch: it has no argument to"),
        ("facts.recipient_is_nw", "email.send", "it does not declare the fact recipient_is_nw"),
        ("facts.recipient_is_new", "*", "crm.search, web.fetch: it does not declare the fact recipient_is_new"),
        ("facts.recipient_is_new > 1", "email.send", "no matching overload for '_>_' applied to '(bool, int)'"),
        ("args.to > 5", "email.send", "no matching overload for '_>_' applied to '(string, int)'"),
        ("has(args.to) && args.to > 5", "email.send", "'(string, int)'"),
        ("args.urgent == 'yes'", "email.send", "'(bool, string)'"),
        ("args.to", "email.send", "not true or false"),
        ("tool = 'x'", "email.send", "Syntax error"),
        ("args.to.matches('(')", "email.send", "the pattern '(' is refused: invalid regular expression: missing )"),
        ("has(facts.recipient_is_new)", "email.send", "has() does not work on facts"),
        ("has( principal . user_id ) && true", "email.send", "has() does not work on principal"),
        ("args.`to` == 'x'", "email.send", "backticks"),
    ],
)
def test_a_rule_that_does_not_fit_is_told_where_and_what_to_do(condition: str, tool: str, words: str) -> None:
    errors = [str(finding) for finding in found(condition, tool) if finding.severity == "error"]
    assert errors
    assert words in errors[0]


def test_an_argument_that_may_be_left_out_is_a_warning_with_what_then_happens() -> None:
    schema = {
        "type": "object",
        "properties": {"to": {"type": "string"}, "note": {"type": "string"}},
        "required": ["to"],
    }
    tools = [spec("email.send").model_copy(update={"input_schema": schema})]
    for effect, words in (("deny", "denied"), ("require_approval", "asked"), ("allow", "allows nothing")):
        draft = RuleDraft.model_validate({"name": "r", "effect": effect, "condition": "args.note == 'x'"})
        [finding] = lint(draft, tools, FACTS)
        assert finding.severity == "warning"
        assert "note may be left out" in finding.message
        assert words in finding.message


def test_a_pattern_that_matches_no_tool_is_a_warning_and_its_condition_is_still_compiled() -> None:
    [finding] = found("facts.recipient_is_new", "mcp.linear.*")
    assert (finding.severity, finding.tool) == ("warning", None)
    assert "speaks about no tool" in finding.message
    assert [finding.severity for finding in found("facts.nope", "mcp.linear.*")] == ["warning", "error"]


def test_a_condition_that_fails_on_a_made_up_call_is_a_warning() -> None:
    [finding] = found("int(args.to) > 5")
    assert finding.severity == "warning"
    assert "made-up call" in finding.message


def test_a_fact_of_any_shape_has_no_made_up_value_to_be_tried_with() -> None:
    assert found("facts.account && args.to == 'x'") == []
    assert found("facts.account.tier == 'gold'") == []


def test_a_schema_that_admits_other_arguments_admits_other_names() -> None:
    open_ = spec("mcp.any.call").model_copy(update={"input_schema": {"type": "object", "additionalProperties": True}})
    draft = RuleDraft.model_validate({"name": "r", "effect": "deny", "condition": "args.whatever == 1"})
    assert [finding.severity for finding in lint(draft, [open_], FACTS)] == ["warning"]  # tried without any
