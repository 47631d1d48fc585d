"""Calls and rules for tests of the policy: a question with everything of it chosen, and a store of rules that counts its reads."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Literal
from uuid import UUID, uuid4

from pydantic import BaseModel

from agentic.contract.clock import Clock
from agentic.contract.errors import StorageUnavailable
from agentic.contract.principal import Principal
from agentic.contract.trust import Trust
from agentic.services.policy.ports import StoredRules
from agentic.services.policy.rules import Rule, RuleDraft, RuleOrigin
from agentic.services.tools.context import CallContext
from agentic.services.tools.models import HandlerBinding, IdempotencyClass, Risk, SideEffects, ToolSpec
from agentic.services.tools.ports import PolicyQuestion, RulesVersion
from agentic.testing import FakeClock

ORGANIZATION = UUID("00000000-0000-4000-8000-00000000000a")
NOW = datetime(2026, 1, 5, 9, tzinfo=UTC)


class Email(BaseModel):
    """Arguments of the tool rules are written about here."""

    to: str
    subject: str = ""
    cc: list[str] | None = None
    copies: int = 1
    urgent: bool = False


def spec(
    name: str = "email.send",
    *,
    side_effects: SideEffects = SideEffects.SEND,
    risk: Risk = Risk.HIGH,
    arguments: type[BaseModel] = Email,
    **declared: Any,
) -> ToolSpec:
    """A contract; what the registry checks is not checked here."""
    return ToolSpec(
        name=name,
        description="A tool.",
        input_schema=arguments.model_json_schema(),
        output_schema={"type": "object"},
        binding=HandlerBinding(handler_key=name),
        side_effects=side_effects,
        idempotency=IdempotencyClass.NON_IDEMPOTENT,
        risk=risk,
        **declared,
    )


async def _nothing() -> None:
    return


def question(
    spec_: ToolSpec | None = None,
    arguments: Mapping[str, Any] | None = None,
    *,
    granted: bool = True,
    member: bool = True,
    context_trust: Trust = Trust.USER,
    environment: Literal["live", "frozen"] = "live",
    version: RulesVersion | None = None,
    user_id: UUID | None = None,
    clock: Clock | None = None,
) -> PolicyQuestion:
    """A call put to the policy: one email, unless the test says something else."""
    asked = spec_ or spec()
    given = dict({"to": "ada@fjord.example", "subject": "Hello"} if arguments is None else arguments)
    clock = clock or FakeClock()
    return PolicyQuestion(
        spec=asked,
        arguments=given,
        granted=granted,
        member=member,
        context_trust=context_trust,
        environment=environment,
        now=NOW,
        run_kind="agent",
        rules_version=version or RulesVersion(),
        argument_trust=Trust.EXTERNAL,
        context=CallContext(
            principal=Principal(organization_id=ORGANIZATION, user_id=user_id),
            run_id=uuid4(),
            tool=asked.name,
            idempotency_key=None,
            attempt=1,
            timeout_s=1.0,
            deadline=clock.monotonic() + asked.timeout_s,
            clock=clock,
            before_first_byte=_nothing,
        ),
        model=Email.model_construct(**given),
    )


def rule(name: str, effect: str, condition: str | None = None, *, version: int = 1, **fields: Any) -> Rule:
    """A stored rule of the organization."""
    origin = fields.pop("origin", RuleOrigin.ORGANIZATION)
    draft = RuleDraft.model_validate({"name": name, "effect": effect, "condition": condition, **fields})
    return Rule(**draft.model_dump(), id=uuid4(), version=version, origin=origin)


class MemoryRules:
    """A store of rules that a test fills. It is unreachable while ``down``."""

    def __init__(self, rules: Sequence[Rule] = (), version: RulesVersion | None = None) -> None:
        self.rules = list(rules)
        self.version = version or RulesVersion()
        self.reads = 0
        self.down = False

    async def live(self, organization_id: UUID | None) -> StoredRules:
        self.reads += 1
        if self.down:
            raise StorageUnavailable("the database is away")
        return StoredRules(version=self.version, rules=list(self.rules))

    async def save(self, draft: RuleDraft, *, organization_id: UUID | None, user_id: UUID | None) -> Rule | None:
        raise AssertionError("nothing is saved here")

    async def retire(self, name: str, *, organization_id: UUID | None, user_id: UUID | None) -> Rule | None:
        raise AssertionError("nothing is retired here")

    async def is_admin(self, organization_id: UUID, user_id: UUID) -> bool:
        return True
