"""From what the rules said to one decision: pure, total, and never less strict for a rule more (ADR 0026, D4)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from agentic.services.policy.expressions import ConditionError
from agentic.services.policy.matrix import external_floor, gate, unruled
from agentic.services.policy.rules import Rule, RuleEffect, RuleOrigin
from agentic.services.tools.ports import Decision, PolicyQuestion

ORDER: Final = (RuleEffect.DENY, RuleEffect.REQUIRE_APPROVAL, RuleEffect.ALLOW)
"""From strict to lenient; the first effect that speaks decides."""
_RANK: Final = (RuleOrigin.PLATFORM, RuleOrigin.ORGANIZATION, RuleOrigin.PACKAGED)


@dataclass(frozen=True, kw_only=True, slots=True)
class Said:
    """A rule that speaks about the call, and what its condition came to."""

    rule: Rule
    answer: bool | ConditionError

    @property
    def counts(self) -> bool:
        """Whether the rule takes effect: its condition holds, or failed in a rule that restricts."""
        if isinstance(self.answer, ConditionError):
            return self.rule.effect is not RuleEffect.ALLOW
        return self.answer


def verdict(question: PolicyQuestion, said: Sequence[Said]) -> Decision:
    """Decide a call.

    Args:
        question: the call.
        said: what the rules that speak about it came to. The lenient ones may be left out once a stricter one counts.
    """
    before = gate(question)
    if before is not None:
        return before
    counting = [one for one in said if one.counts]
    for effect in (RuleEffect.DENY, RuleEffect.REQUIRE_APPROVAL):
        speaking = [one for one in counting if one.rule.effect is effect]
        if speaking:
            return _restriction(speaking)
    allowing = [one for one in counting if one.rule.effect is RuleEffect.ALLOW]
    if not allowing:
        return unruled(question)
    floor = external_floor(question)
    if floor is not None:
        allowing = [one for one in allowing if one.rule.covers_external]
        if not allowing:
            return floor
    return _named(_first(allowing), reason="a rule allows it")


def _restriction(speaking: Sequence[Said]) -> Decision:
    first = _first(speaking)
    four_eyes = any(one.rule.four_eyes for one in speaking)
    if isinstance(first.answer, ConditionError):
        return _named(first, reason="the rule's condition could not be told, so it counts", four_eyes=four_eyes)
    return _named(first, reason="a rule of the policy", four_eyes=four_eyes)


def _first(said: Sequence[Said]) -> Said:
    """The one a decision names: a condition that holds before one that failed, second persons first, then by origin and name."""
    return min(
        said,
        key=lambda one: (
            isinstance(one.answer, ConditionError),
            not one.rule.four_eyes,
            _RANK.index(one.rule.origin),
            one.rule.name,
        ),
    )


def _named(said: Said, *, reason: str, four_eyes: bool = False) -> Decision:
    """The decision of one rule, with its own words where its condition held; an error's text may quote a value and stays out."""
    rule = said.rule
    own = rule.reason if not isinstance(said.answer, ConditionError) else ""
    return Decision(
        effect=rule.effect.value,
        rule_id=rule.rule_id,
        rule_version=rule.version,
        reason=own or reason,
        four_eyes=four_eyes,
    )
