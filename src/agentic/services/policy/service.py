"""Rules for people: saved after a check, retired, listed, and explained for a call nobody makes."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from pydantic import BaseModel, ValidationError

from agentic.contract.canonical import canonical
from agentic.contract.clock import Clock
from agentic.contract.errors import Conflict, NotFound, NotPermitted
from agentic.contract.principal import Principal
from agentic.contract.trust import Trust
from agentic.services.policy.defaults import PACKAGED_RULES
from agentic.services.policy.engine import Asking
from agentic.services.policy.explain import Explanation, explanation
from agentic.services.policy.facts import FactReader, FactRegistry
from agentic.services.policy.lint import Finding, RuleRefused, lint
from agentic.services.policy.ports import RuleStore
from agentic.services.policy.rules import Rule, RuleDraft, counting
from agentic.services.tools.arguments import InvalidArguments, parse_arguments
from agentic.services.tools.context import CallContext
from agentic.services.tools.declarations import Tool
from agentic.services.tools.models import ToolSpec
from agentic.services.tools.ports import PolicyQuestion, RulesVersion

_EXPLAIN_S = 30.0
_NO_RUN = UUID(int=0)


class AnyArguments(BaseModel, extra="allow"):
    """Arguments of a tool whose code is not here."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SavedRule:
    """A stored rule, and what its author should know."""

    rule: Rule
    warnings: Sequence[Finding]


class PolicyService:
    """Manages rules.

    Args:
        store: where they are kept.
        tools: the specs of every live tool, to check conditions against.
        facts: what the deployment can find out.
        clock: for the deadline of facts that an explanation needs, and its time of day.
        runnable: the tools whose code is here; an explanation hands their own argument types to fact resolvers.
    """

    def __init__(
        self,
        *,
        store: RuleStore,
        tools: Iterable[ToolSpec],
        facts: FactRegistry,
        clock: Clock,
        runnable: Mapping[str, Tool] | None = None,
        packaged: Sequence[Rule] = PACKAGED_RULES,
    ) -> None:
        self._store = store
        self._tools = {spec.name: spec for spec in tools}
        self._facts = facts
        self._clock = clock
        self._runnable = runnable or {}
        self._packaged = tuple(packaged)

    async def rules(self, organization_id: UUID | None) -> list[Rule]:
        """The live rules of an organization, the platform's and the packaged ones included, disabled ones too, by name."""
        stored = (await self._store.live(organization_id)).rules
        replaced = {rule.name for rule in stored}
        every = [*stored, *(rule for rule in self._packaged if rule.name not in replaced)]
        return sorted(every, key=lambda rule: (rule.name, rule.origin))

    def lint(self, draft: RuleDraft) -> list[Finding]:
        """What is wrong with a rule, and what its author should know."""
        return lint(draft, self._tools.values(), self._facts)

    def check(self, draft: RuleDraft) -> list[Finding]:
        """The warnings about a rule that may be saved.

        Raises:
            RuleRefused: its condition does not fit a tool it may speak about; every finding is named.
        """
        findings = self.lint(draft)
        errors = [finding for finding in findings if finding.severity == "error"]
        if errors:
            raise RuleRefused(draft.name, errors)
        return findings

    async def save(self, draft: RuleDraft, *, organization_id: UUID | None, user_id: UUID | None = None) -> SavedRule:
        """Store a rule as the next version of its name. Counts at the next call of every process, also of runs that wait (D2).

        Args:
            organization_id: whose rule it is; ``None`` for one that counts for every organization.
            user_id: the authenticated person; ``None`` for whoever administers the deployment itself.

        Raises:
            RuleRefused: its condition does not fit a tool it may speak about; every finding is named.
            NotPermitted: the person is no admin of the organization.
        """
        warnings = self.check(draft)
        rule = await self._store.save(draft, organization_id=organization_id, user_id=user_id)
        if rule is None:
            raise _not_permitted()
        return SavedRule(rule=rule, warnings=warnings)

    async def retire(self, name: str, *, organization_id: UUID | None, user_id: UUID | None = None) -> Rule:
        """End a rule; its versions stay for the record.

        Raises:
            NotFound: there is none of this name; a packaged rule is switched off by saving a disabled one of its name.
            NotPermitted: the person is no admin of the organization.
        """
        rule = await self._store.retire(name, organization_id=organization_id, user_id=user_id)
        if rule is not None:
            return rule
        if user_id is not None and (
            organization_id is None or not await self._store.is_admin(organization_id, user_id)
        ):
            raise _not_permitted()
        if any(rule.name == name for rule in self._packaged):
            raise NotFound(
                f"{name} comes with the package; save a rule of that name with enabled false to switch it off"
            )
        raise NotFound(f"there is no rule {name!r} here; 'agentic policy list' shows those there are")

    async def explain(
        self,
        organization_id: UUID,
        tool: str,
        arguments_text: str,
        *,
        user_id: UUID | None = None,
        facts: Mapping[str, Any] | None = None,
        context_trust: Trust = Trust.USER,
        argument_trust: Trust = Trust.EXTERNAL,
        environment: Literal["live", "frozen"] = "live",
        run_kind: str = "agent",
        now: datetime | None = None,
    ) -> Explanation:
        """What the rules of now would say of a call by a member whose definition holds the tool. Nothing runs, nothing is stored.

        Args:
            arguments_text: the arguments as a model would write them.
            facts: values to take in place of asking their resolvers.
            context_trust: what the run would have read.
            argument_trust: who the arguments would come from; a model's are external.

        Raises:
            NotFound: no live tool has this name.
            Conflict: the arguments break the tool's schema.
            StorageUnavailable: the rules cannot be read.
        """
        spec = self._tools.get(tool)
        if spec is None:
            raise NotFound(f"there is no tool {tool!r}; 'agentic tools list' shows those there are")
        runnable = self._runnable.get(tool)
        try:
            arguments = parse_arguments(arguments_text, spec.input_schema)
            model = (runnable.input_model if runnable else AnyArguments).model_validate_json(canonical(arguments))
        except (InvalidArguments, ValidationError) as error:
            raise Conflict(f"{tool} does not take these arguments: {error}") from error
        question = PolicyQuestion(
            spec=spec,
            arguments=arguments,
            granted=True,
            member=True,
            context_trust=context_trust,
            environment=environment,
            now=now or self._clock.now(),
            run_kind=run_kind,
            rules_version=RulesVersion(),
            argument_trust=argument_trust,
            context=self._context(organization_id, user_id, tool),
            model=model,
        )
        rules = counting((await self._store.live(organization_id)).rules, self._packaged)
        reader = FactReader(self._facts, question.context, model, facts)
        said = await Asking(question, facts=self._facts, reader=reader).ask(rules)
        return explanation(question, rules, said, dict(reader.found))

    def _context(self, organization_id: UUID, user_id: UUID | None, tool: str) -> CallContext:
        async def nothing_to_mark() -> None:
            return

        return CallContext(
            principal=Principal(organization_id=organization_id, user_id=user_id),
            run_id=_NO_RUN,
            tool=tool,
            idempotency_key=None,
            attempt=1,
            timeout_s=_EXPLAIN_S,
            deadline=self._clock.monotonic() + _EXPLAIN_S,
            clock=self._clock,
            before_first_byte=nothing_to_mark,
        )


def _not_permitted() -> NotPermitted:
    return NotPermitted("changing rules takes the role admin in their organization; ask an admin to do it")
