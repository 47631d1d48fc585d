"""What may happen: stage 1 the live grant, stage 2 the rules; the built-in matrix where no rule speaks.

`engine` decides, `verdict` and `matrix` are what it decides by, `service` is how people change and question the rules.
"""

from agentic.services.policy.defaults import PACKAGED_RULES
from agentic.services.policy.engine import PolicyEngine
from agentic.services.policy.explain import Explanation
from agentic.services.policy.facts import Fact, FactRegistry, FactResolver
from agentic.services.policy.lint import Finding, RuleRefused
from agentic.services.policy.matrix import decide
from agentic.services.policy.rules import Rule, RuleDraft, RuleEffect
from agentic.services.policy.service import PolicyService

__all__ = [
    "PACKAGED_RULES",
    "Explanation",
    "Fact",
    "FactRegistry",
    "FactResolver",
    "Finding",
    "PolicyEngine",
    "PolicyService",
    "Rule",
    "RuleDraft",
    "RuleEffect",
    "RuleRefused",
    "decide",
]
