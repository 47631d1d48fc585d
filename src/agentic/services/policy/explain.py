"""Says of one call, without making it, what every rule said and why the decision fell as it did."""

from collections.abc import Sequence
from typing import Any, Literal

from agentic.contract.json_types import JsonObject
from agentic.contract.values import Value
from agentic.services.policy.expressions import ConditionError
from agentic.services.policy.facts import NoAnswer
from agentic.services.policy.matrix import external_floor, gate
from agentic.services.policy.rules import Rule
from agentic.services.policy.verdict import Said, verdict
from agentic.services.tools.models import ToolSpec
from agentic.services.tools.ports import PolicyQuestion

SaidWord = Literal["does not speak", "holds", "does not hold", "failed"]


class RuleSaid(Value):
    """What one rule said."""

    rule_id: str
    version: int
    effect: str
    condition: str | None
    said: SaidWord
    counts: bool
    why: str = ""
    """Why it does not speak about the tool, or how its condition failed."""


class Explanation(Value):
    """A decision and what it rests on."""

    tool: str
    effect: str
    rule_id: str
    rule_version: int
    reason: str
    four_eyes: bool
    floor: str | None
    """The floor that applies to this call, whether or not it decided."""
    rules: list[RuleSaid]
    facts: JsonObject
    """Facts that rules needed, by name; ``{"failed": why}`` for one that did not answer."""


def explanation(
    question: PolicyQuestion, rules: Sequence[Rule], said: Sequence[Said], facts: dict[str, Any]
) -> Explanation:
    """Put what is known of a call into words.

    Args:
        question: the call.
        rules: all that count for the organization.
        said: what those that speak about the call came to.
        facts: what was found out for them.
    """
    decision = verdict(question, said)
    answers = {id(one.rule): one for one in said}
    floor = gate(question) or external_floor(question)
    return Explanation(
        tool=question.tool,
        effect=decision.effect,
        rule_id=decision.rule_id,
        rule_version=decision.rule_version,
        reason=decision.reason,
        four_eyes=decision.four_eyes,
        floor=floor.rule_id if floor is not None else None,
        rules=[_said(rule, answers.get(id(rule)), question.spec) for rule in rules],
        facts={
            name: {"failed": value.message} if isinstance(value, NoAnswer) else value for name, value in facts.items()
        },
    )


def _said(rule: Rule, said: Said | None, spec: ToolSpec) -> RuleSaid:
    word, why = _word(rule, said, spec)
    return RuleSaid(
        rule_id=rule.rule_id,
        version=rule.version,
        effect=rule.effect.value,
        condition=rule.condition,
        said=word,
        counts=said is not None and said.counts,
        why=why,
    )


def _word(rule: Rule, said: Said | None, spec: ToolSpec) -> tuple[SaidWord, str]:
    if said is None:
        return "does not speak", _silence(rule, spec)
    if isinstance(said.answer, ConditionError):
        return "failed", said.answer.message
    return ("holds" if said.answer else "does not hold"), ""


def _silence(rule: Rule, spec: ToolSpec) -> str:
    asked = {"side_effects": rule.side_effects, "risk": rule.risk}
    for field, wanted in asked.items():
        if wanted is not None and getattr(spec, field) not in wanted:
            return f"{field} is {getattr(spec, field)}, the rule is about {', '.join(sorted(wanted))}"
    if rule.egress is not None and rule.egress != spec.egress:
        return f"egress is {spec.egress}, the rule is about {rule.egress}"
    return f"it is about {rule.tool}"
