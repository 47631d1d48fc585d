from typing import Any

import pytest
from pydantic import ValidationError

from agentic.services.policy.rules import RuleDraft, RuleOrigin, counting, matches
from agentic.services.tools.models import Risk, SideEffects
from policy_world import rule, spec


@pytest.mark.parametrize(
    ("pattern", "tool", "covered"),
    [
        ("*", "email.send", True),
        ("email.send", "email.send", True),
        ("email.send", "email.send_later", False),
        ("email.send", "email.send.now", False),
        ("email.*", "email.send", True),
        ("email.*", "email.drafts.send", True),
        ("email.*", "emails.send", False),
        ("email.*", "mcp.email.send", False),
        ("mcp.linear.*", "mcp.linear.create_issue", True),
        ("mcp.linear.*", "mcp.linear2.create_issue", False),
        ("mcp.*", "mcp.linear.create_issue", True),
    ],
)
def test_a_pattern_covers_whole_segments_of_a_name(pattern: str, tool: str, covered: bool) -> None:
    assert matches(pattern, tool) is covered


@pytest.mark.parametrize(
    "pattern", ["", "email", "*.send", "email.*.now", "email.se*", "Email.send", "email..*", "email.send ", "**"]
)
def test_a_pattern_that_could_be_read_in_two_ways_is_refused(pattern: str) -> None:
    with pytest.raises(ValidationError, match="tool pattern"):
        RuleDraft.model_validate({"name": "r", "effect": "deny", "tool": pattern})


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"name": "No Spaces"}, "lower-case words"),
        ({"effect": "warn"}, "deny"),
        ({"condition": "  "}, "leave it out"),
        ({"condition": "tool == 'a' // " + "ä" * 2050}, "at most 4096 bytes; this one has 4115"),
        ({"condition": "tool == '\ud800'"}, "surrogate"),
        ({"condition": "tool == '\0'"}, "expression"),
        ({"side_effects": []}, "at least 1"),
        ({"side_effects": ["explode"]}, "side_effects"),
        ({"covers_external": True}, "belongs to an allow rule"),
        ({"effect": "allow", "four_eyes": True}, "belongs to a require_approval rule"),
        ({"colour": "red"}, "colour"),
    ],
)
def test_a_rule_of_the_wrong_shape_says_what_is_wrong(fields: dict[str, Any], words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        RuleDraft.model_validate({"name": "r", "effect": "deny", **fields})


def test_a_rule_speaks_about_calls_by_name_effect_risk_and_egress_together() -> None:
    asked = rule("r", "deny", tool="web.*", side_effects=["read"], risk=["low", "medium"], egress="open")
    fetch = spec("web.fetch", side_effects=SideEffects.READ, risk=Risk.LOW, egress="open")
    assert asked.speaks_about(fetch)
    for other in ({"name": "crm.fetch"}, {"side_effects": SideEffects.SEND}, {"risk": Risk.HIGH}, {"egress": "none"}):
        assert not asked.speaks_about(fetch.model_copy(update=other))


def test_a_stored_rule_replaces_the_packaged_one_of_its_name_and_a_disabled_one_switches_it_off() -> None:
    packaged = [rule("a", "deny", origin=RuleOrigin.PACKAGED), rule("b", "deny", origin=RuleOrigin.PACKAGED)]
    mine, off = rule("a", "allow"), rule("b", "deny", enabled=False)
    assert [one.rule_id for one in counting([], packaged)] == ["rule:packaged/a", "rule:packaged/b"]
    assert list(counting([mine, off], packaged)) == [mine]


def test_an_organizations_rule_never_replaces_the_platforms() -> None:
    platform, mine = rule("a", "deny", origin=RuleOrigin.PLATFORM), rule("a", "allow")
    assert {one.rule_id for one in counting([platform, mine], [])} == {"rule:a", "rule:platform/a"}
