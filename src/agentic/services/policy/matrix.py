"""The built-in matrix and its two floors (ADR 0012).

Stage 1 is the live grant: the definition holds the tool and the person still belongs to the organization. Stage 2, with no other
rule: reads run; a write runs at low risk and asks above it; a send asks; high risk asks. Floors: a frozen environment denies every
non-read; a send, or a write above low risk, asks once the run has seen external content.
"""

from typing import Literal

from agentic.contract.trust import Trust
from agentic.services.tools.models import Risk, SideEffects
from agentic.services.tools.ports import Decision, PolicyQuestion

VERSION = 1
"""Raised whenever an answer of the matrix changes; stored with every decision."""


def decide(question: PolicyQuestion) -> Decision:
    """Decide one call by the matrix alone. Total: every question has exactly one answer (D4)."""
    return gate(question) or unruled(question)


def gate(question: PolicyQuestion) -> Decision | None:
    """The denials that come before any rule: stage 1, and the floor of a frozen environment. ``None``: go on."""
    if not question.member:
        return _decision("deny", "authority.member", "the run's user no longer belongs to the organization")
    if not question.granted:
        return _decision("deny", "authority.grant", "the definition does not hold this tool")
    if question.environment == "frozen" and question.side_effects in (SideEffects.WRITE, SideEffects.SEND):
        return _decision("deny", "floor.frozen", "the environment is frozen: only reads run")
    return None


def external_floor(question: PolicyQuestion) -> Decision | None:
    """The question a person is asked once the run has read external content, whatever rule allows the call. ``None``: none."""
    leaves = question.side_effects is SideEffects.SEND
    changes = question.side_effects is SideEffects.WRITE and question.risk is not Risk.LOW
    if question.context_trust is Trust.EXTERNAL and (leaves or changes):
        return _decision("require_approval", "floor.external", "the run has read external content")
    return None


def unruled(question: PolicyQuestion) -> Decision:
    """What happens to a call that no rule speaks about."""
    if question.side_effects is SideEffects.SEND:
        return _decision("require_approval", "matrix.send", "it leaves the organization")
    if question.risk is Risk.HIGH:
        return _decision("require_approval", "matrix.high_risk", "high risk")
    if question.side_effects is SideEffects.WRITE and question.risk is not Risk.LOW:
        return external_floor(question) or _decision("require_approval", "matrix.write", "a write above low risk")
    return _decision("allow", f"matrix.{question.side_effects}", "within the matrix")


def _decision(effect: Literal["allow", "deny", "require_approval"], rule: str, reason: str) -> Decision:
    return Decision(effect=effect, rule_id=rule, rule_version=VERSION, reason=reason)
