"""The action checkpoint: the rules of the moment, asked about one call (ADR 0026).

Rules are read when the preflight's version differs from the one in hand, facts when a rule that speaks about the call names them.
What the answers amount to is `verdict`; a database that does not answer raises (D4).
"""

from collections import OrderedDict
from collections.abc import Sequence
from uuid import UUID

from agentic.services.policy.cel_text import read_cel
from agentic.services.policy.defaults import PACKAGED_RULES
from agentic.services.policy.expressions import Bound, Condition, ConditionError, compiled, environment
from agentic.services.policy.facts import FactReader, FactRegistry, NoAnswer
from agentic.services.policy.matrix import gate
from agentic.services.policy.ports import RuleStore
from agentic.services.policy.rules import Rule, RuleEffect, counting
from agentic.services.policy.verdict import ORDER, Said, verdict
from agentic.services.tools.models import ToolSpec
from agentic.services.tools.ports import Decision, PolicyQuestion, RulesVersion

_KEPT_ORGANIZATIONS = 1024


class PolicyEngine:
    """Decides by the rules that count for the call's organization, over the built-in matrix.

    Args:
        store: where rules are kept.
        facts: what the deployment can find out.
        packaged: rules that count until one of the same name replaces them.
    """

    def __init__(self, *, store: RuleStore, facts: FactRegistry, packaged: Sequence[Rule] = PACKAGED_RULES) -> None:
        self._store = store
        self._facts = facts
        self._packaged = tuple(packaged)
        self._kept: OrderedDict[UUID, tuple[RulesVersion, tuple[Rule, ...]]] = OrderedDict()

    async def decide(self, question: PolicyQuestion) -> Decision:
        """Decide one call.

        Raises:
            StorageUnavailable: the rules cannot be read.
        """
        before = gate(question)
        if before is not None:
            return before
        organization_id = question.context.organization_id
        rules = await self.rules(organization_id, question.rules_version)
        asking = Asking(question, facts=self._facts)
        said: list[Said] = []
        for effect in ORDER:
            said += await asking.ask([rule for rule in rules if rule.effect is effect])
            if any(one.counts for one in said):
                break
        return verdict(question, said)

    async def rules(self, organization_id: UUID, version: RulesVersion) -> tuple[Rule, ...]:
        """The rules that count, kept from the last read of this version.

        Raises:
            StorageUnavailable: they cannot be read.
        """
        kept = self._kept.get(organization_id)
        if kept is not None and kept[0] == version:
            self._kept.move_to_end(organization_id)
            return kept[1]
        stored = await self._store.live(organization_id)
        rules = counting(stored.rules, self._packaged)
        self._kept[organization_id] = (stored.version, rules)
        while len(self._kept) > _KEPT_ORGANIZATIONS:
            self._kept.popitem(last=False)
        return rules

    async def may_ask(self, organization_id: UUID, specs: Sequence[ToolSpec]) -> frozenset[str]:
        """The tools whose calls a rule of now could ask a person about, by name; runs freeze such reads as paused (ADR 0026).

        Raises:
            StorageUnavailable: the rules cannot be read.
        """
        stored = await self._store.live(organization_id)
        asking = [rule for rule in counting(stored.rules, self._packaged) if rule.effect is RuleEffect.REQUIRE_APPROVAL]
        return frozenset(spec.name for spec in specs if any(rule.speaks_about(spec) for rule in asking))


class Asking:
    """Puts one call to rules. Facts are found out once, and only those that a rule which speaks about the call names."""

    def __init__(self, question: PolicyQuestion, *, facts: FactRegistry, reader: FactReader | None = None) -> None:
        self._question = question
        self._types = facts.types_for(question.spec)
        self.facts = reader or FactReader(facts, question.context, question.model)
        self._bound: tuple[frozenset[str], Bound] | None = None

    async def ask(self, rules: Sequence[Rule]) -> list[Said]:
        """What each of these rules comes to, of those that speak about the call."""
        speaking = [rule for rule in rules if rule.speaks_about(self._question.spec)]
        conditions = {rule.condition: self._compiled(rule.condition) for rule in speaking if rule.condition is not None}
        declared = dict(self._types)
        needed = {
            name
            for text, condition in conditions.items()
            if isinstance(condition, Condition)
            for name in read_cel(text).facts & declared.keys()
        }
        if needed or conditions:
            await self._bind(needed)
        return [Said(rule=rule, answer=self._answer(rule, conditions)) for rule in speaking]

    def _compiled(self, text: str) -> Condition | ConditionError:
        return compiled(text, self._types)

    def _answer(self, rule: Rule, conditions: dict[str, Condition | ConditionError]) -> bool | ConditionError:
        if rule.condition is None:
            return True
        condition = conditions[rule.condition]
        if isinstance(condition, ConditionError):
            return condition
        assert self._bound is not None
        return condition.answer(self._bound[1])

    async def _bind(self, needed: set[str]) -> None:
        if self._bound is not None and needed <= self._bound[0]:
            return
        await self.facts.read(needed)
        found = {name: value for name, value in self.facts.found.items() if not isinstance(value, NoAnswer)}
        question = self._question
        values = {
            "tool": question.tool,
            "side_effects": str(question.side_effects),
            "risk": str(question.risk),
            "args": dict(question.arguments),
            "origin_trust": str(question.context_trust),
            "argument_trust": str(question.argument_trust),
            "environment": question.environment,
            "principal.user_id": str(question.context.principal.user_id or ""),
            "now": question.now,
            "run.kind": question.run_kind,
            **{f"facts.{name}": value for name, value in found.items() if name in dict(self._types)},
        }
        self._bound = (frozenset(self.facts.found), environment(self._types).bind(values))
