"""Laws of the decision, over all rules, answers and calls."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentic.contract.trust import Trust
from agentic.services.policy import matrix
from agentic.services.policy.expressions import ConditionError
from agentic.services.policy.rules import RuleOrigin
from agentic.services.policy.verdict import Said, verdict
from agentic.services.tools.models import Risk, SideEffects
from agentic.services.tools.ports import PolicyQuestion
from policy_world import question, rule, spec

STRICT = {"deny": 0, "require_approval": 1, "allow": 2}
ERROR = ConditionError(message="a value that says too much")


@st.composite
def said(draw: st.DrawFn, effect: str | None = None) -> Said:
    effect = effect or draw(st.sampled_from(sorted(STRICT)))
    fields = {
        "covers_external": effect == "allow" and draw(st.booleans()),
        "four_eyes": effect == "require_approval" and draw(st.booleans()),
        "origin": draw(st.sampled_from(RuleOrigin)),
    }
    made = rule(draw(st.sampled_from("abc")), effect, "tool == 'x'", **fields)
    answers: list[bool | ConditionError] = [True, False, ERROR]
    return Said(rule=made, answer=draw(st.sampled_from(answers)))


@st.composite
def questions(draw: st.DrawFn) -> PolicyQuestion:
    return question(
        spec(side_effects=draw(st.sampled_from(SideEffects)), risk=draw(st.sampled_from(Risk))),
        granted=draw(st.integers(0, 9)) > 0,
        member=draw(st.integers(0, 9)) > 0,
        context_trust=draw(st.sampled_from(Trust)),
        environment=draw(st.sampled_from(["live", "live", "frozen"])),
    )


some = st.lists(said(), max_size=5)


@pytest.mark.guarantee("D4")
@given(questions(), some, said("deny"))
def test_a_deny_rule_more_never_allows_more(asked: PolicyQuestion, rules: list[Said], more: Said) -> None:
    assert STRICT[verdict(asked, [*rules, more]).effect] <= STRICT[verdict(asked, rules).effect]


@pytest.mark.guarantee("D4")
@given(questions(), some, said("require_approval"))
def test_an_approval_rule_more_never_allows_more(asked: PolicyQuestion, rules: list[Said], more: Said) -> None:
    assert STRICT[verdict(asked, [*rules, more]).effect] <= STRICT[verdict(asked, rules).effect]


@given(questions(), some, said("allow"))
def test_an_allow_rule_more_lifts_no_denial_and_no_question_of_a_rule(
    asked: PolicyQuestion, rules: list[Said], more: Said
) -> None:
    before, after = verdict(asked, rules), verdict(asked, [*rules, more])
    if before.effect == "deny" or before.rule_id.startswith("rule:"):
        assert after.effect == before.effect


@given(questions(), some)
def test_the_order_of_rules_decides_nothing(asked: PolicyQuestion, rules: list[Said]) -> None:
    assert verdict(asked, rules).effect == verdict(asked, rules[::-1]).effect
    assert verdict(asked, rules).four_eyes == verdict(asked, rules[::-1]).four_eyes


@pytest.mark.guarantee("D4")
@given(questions(), some)
def test_an_error_is_never_more_lenient_than_the_condition_either_way(asked: PolicyQuestion, rules: list[Said]) -> None:
    def all_said(answer: bool) -> Sequence[Said]:
        return [
            Said(rule=one.rule, answer=answer if isinstance(one.answer, ConditionError) else one.answer)
            for one in rules
        ]

    failed = verdict(asked, rules)
    restricting = [one for one in rules if one.rule.effect != "allow"]
    if all(not isinstance(one.answer, ConditionError) or one in restricting for one in rules):
        assert STRICT[failed.effect] <= min(STRICT[verdict(asked, all_said(value)).effect] for value in (True, False))
    assert ERROR.message not in failed.reason


@pytest.mark.guarantee("D1")
@given(questions(), some)
def test_no_rule_lifts_a_missing_grant_a_lost_membership_or_a_frozen_environment(
    asked: PolicyQuestion, rules: list[Said]
) -> None:
    changes = asked.side_effects in (SideEffects.WRITE, SideEffects.SEND)
    if not asked.member or not asked.granted or (asked.environment == "frozen" and changes):
        assert verdict(asked, rules).effect == "deny"
        assert verdict(asked, rules).rule_id.split(".")[0] in ("authority", "floor")


@given(questions(), some)
def test_external_content_asks_unless_the_allowing_rule_covers_it(asked: PolicyQuestion, rules: list[Said]) -> None:
    heavy = asked.side_effects is SideEffects.SEND or (
        asked.side_effects is SideEffects.WRITE and asked.risk is not Risk.LOW
    )
    if asked.context_trust is Trust.EXTERNAL and heavy and verdict(asked, rules).effect == "allow":
        assert any(one.rule.covers_external and one.answer is True for one in rules)


@given(questions(), some)
def test_where_no_rule_counts_the_matrix_decides(asked: PolicyQuestion, rules: list[Said]) -> None:
    silent = [one for one in rules if not one.counts]
    assert verdict(asked, silent) == matrix.decide(asked)


@pytest.mark.parametrize(
    ("effect", "decided"), [("deny", "deny"), ("require_approval", "require_approval"), ("allow", "require_approval")]
)
@pytest.mark.guarantee("D4")
def test_an_error_denies_in_a_deny_rule_asks_in_an_approval_rule_and_allows_nothing(effect: str, decided: str) -> None:
    asked = question()  # a send, which the matrix puts to a person
    answer = verdict(asked, [Said(rule=rule("broken", effect, "tool == 'x'"), answer=ERROR)])
    assert answer.effect == decided
    assert answer.rule_id == ("matrix.send" if effect == "allow" else "rule:broken")


def test_a_decision_names_its_rule_its_version_and_its_reason() -> None:
    made = rule("no-mail", "deny", version=7, reason="the mailbox is being moved")
    decided = verdict(question(), [Said(rule=made, answer=True)])
    assert (decided.effect, decided.rule_id, decided.rule_version) == ("deny", "rule:no-mail", 7)
    assert decided.reason == "the mailbox is being moved"


@pytest.mark.guarantee("A5")
def test_a_second_person_is_asked_for_when_any_counting_rule_asks_for_one() -> None:
    plain, second = rule("a", "require_approval"), rule("b", "require_approval", four_eyes=True)
    decided = verdict(question(), [Said(rule=plain, answer=True), Said(rule=second, answer=True)])
    assert decided.four_eyes
    assert decided.rule_id == "rule:b"
    assert not verdict(question(), [Said(rule=plain, answer=True), Said(rule=second, answer=False)]).four_eyes
