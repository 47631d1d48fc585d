import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from pydantic import BaseModel

from agentic.contract.clock import SystemClock
from agentic.contract.errors import StorageUnavailable
from agentic.services.policy.engine import PolicyEngine
from agentic.services.policy.facts import Fact, FactRegistry
from agentic.services.policy.rules import Rule
from agentic.services.tools.context import CallContext
from agentic.services.tools.models import Risk, SideEffects
from agentic.services.tools.ports import RulesVersion
from policy_world import Email, MemoryRules, question, rule, spec

FACT_SPEC = spec(policy_facts=("is_new", "age"))


class Finder:
    """Facts with set values, which count how often they are found out."""

    def __init__(self, **values: Any) -> None:
        self.values = values
        self.asked: list[str] = []

    def registry(self) -> FactRegistry:
        return FactRegistry(
            [
                Fact(name="is_new", type="bool", resolve=self._resolver("is_new")),
                Fact(name="age", type="number", resolve=self._resolver("age")),
            ]
        )

    def _resolver(self, name: str) -> Any:
        async def resolve(ctx: CallContext, args: BaseModel) -> Any:
            assert isinstance(args, Email)
            self.asked.append(name)
            value = self.values[name]
            if isinstance(value, Exception):
                raise value
            if asyncio.iscoroutinefunction(value):
                return await value(ctx, args)
            return value

        return resolve


def engine(rules: Sequence[Rule], finder: Finder | None = None) -> PolicyEngine:
    facts = (finder or Finder(is_new=False, age=1)).registry()
    return PolicyEngine(store=MemoryRules(rules), facts=facts, packaged=())


@pytest.mark.guarantee("D1")
async def test_the_stricter_effect_wins_whatever_the_order() -> None:
    rules = [rule("a", "allow", "true"), rule("b", "require_approval", "true"), rule("c", "deny", "true")]
    read = spec("crm.search", side_effects=SideEffects.READ, risk=Risk.LOW)
    for left, effect in ((3, "deny"), (2, "require_approval"), (1, "allow")):
        assert (await engine(rules[:left]).decide(question(read))).effect == effect


async def test_a_fact_is_found_out_once_and_only_when_a_rule_that_speaks_about_the_call_names_it() -> None:
    finder = Finder(is_new=True, age=40)
    rules = [
        rule("a", "deny", "facts.is_new && args.to == 'nobody@fjord.example'"),
        rule("b", "require_approval", "facts.is_new"),
        rule("c", "require_approval", "facts.is_new && true"),
        rule("d", "deny", "facts.age > 50", tool="crm.*"),
        rule("e", "allow", "facts.age > 50"),
    ]
    decided = await engine(rules, finder).decide(question(FACT_SPEC))
    assert decided.rule_id == "rule:b"
    assert finder.asked == ["is_new"]  # `d` is about other tools, and nobody asked the allow rules any more


async def test_nothing_is_found_out_for_a_call_that_stage_one_denies() -> None:
    finder = Finder(is_new=True, age=1)
    rules = MemoryRules([rule("b", "require_approval", "facts.is_new")])
    decided = await PolicyEngine(store=rules, facts=finder.registry(), packaged=()).decide(
        question(FACT_SPEC, granted=False)
    )
    assert decided.rule_id == "authority.grant"
    assert (finder.asked, rules.reads) == ([], 0)


@pytest.mark.guarantee("D4")
@pytest.mark.parametrize("value", [RuntimeError("the CRM is away"), TimeoutError(), None, "yes", 1, b"yes"], ids=repr)
@pytest.mark.parametrize(("effect", "decided"), [("deny", "deny"), ("require_approval", "require_approval")])
async def test_a_fact_without_an_answer_of_its_type_fails_closed(value: Any, effect: str, decided: str) -> None:
    for condition in ("facts.is_new", "!facts.is_new", "facts.is_new == false"):
        answer = await engine([rule("r", effect, condition)], Finder(is_new=value)).decide(question(FACT_SPEC))
        assert (answer.effect, answer.rule_id) == (decided, "rule:r")
        assert "CRM" not in answer.reason


@pytest.mark.guarantee("D4")
async def test_a_fact_without_an_answer_allows_nothing() -> None:
    for condition in ("facts.is_new", "!facts.is_new"):
        answer = await engine([rule("r", "allow", condition)], Finder(is_new=RuntimeError())).decide(
            question(FACT_SPEC)
        )
        assert answer.rule_id == "matrix.send"


@pytest.mark.guarantee("D4")
async def test_a_fact_that_hangs_is_given_up_at_the_calls_deadline() -> None:
    async def hang(ctx: CallContext, args: BaseModel) -> bool:
        await asyncio.Event().wait()
        return False

    asked = question(spec(policy_facts=("is_new",), timeout_s=0.05), clock=SystemClock())
    async with asyncio.timeout(10):
        answer = await engine([rule("r", "deny", "facts.is_new")], Finder(is_new=hang)).decide(asked)
    assert answer.effect == "deny"


@pytest.mark.guarantee("D4")
async def test_a_rule_that_no_longer_fits_its_tool_fails_closed() -> None:
    without_facts = question(spec())
    assert (await engine([rule("r", "deny", "facts.is_new")]).decide(without_facts)).effect == "deny"
    asks = engine([rule("r", "require_approval", "args.to > 5 && args.gone == 1")])
    assert (await asks.decide(without_facts)).rule_id == "rule:r"


@pytest.mark.guarantee("D4")
async def test_rules_that_cannot_be_read_raise_even_where_older_ones_are_at_hand() -> None:
    store = MemoryRules([])
    policy = PolicyEngine(store=store, facts=FactRegistry(), packaged=())
    await policy.decide(question())
    store.down = True
    await policy.decide(question())  # the same version: nothing to read
    with pytest.raises(StorageUnavailable):
        await policy.decide(question(version=RulesVersion(organization=1)))


@pytest.mark.guarantee("D1")
async def test_rules_are_read_again_exactly_when_the_preflight_saw_another_version() -> None:
    store = MemoryRules([])
    policy = PolicyEngine(store=store, facts=FactRegistry(), packaged=())
    for _ in range(3):
        assert (await policy.decide(question())).rule_id == "matrix.send"
    assert store.reads == 1
    store.rules, store.version = [rule("stop", "deny")], RulesVersion(platform=1)
    for _ in range(3):
        assert (await policy.decide(question(version=store.version))).rule_id == "rule:stop"
    assert store.reads == 2


async def test_a_read_that_a_rule_could_ask_about_is_named_before_the_run_starts() -> None:
    read = spec("web.fetch", side_effects=SideEffects.READ, risk=Risk.LOW)
    other = spec("crm.search", side_effects=SideEffects.READ, risk=Risk.LOW)
    policy = engine([rule("r", "require_approval", "args.to == 'x'", tool="web.*"), rule("d", "deny", tool="crm.*")])
    assert await policy.may_ask(question().context.organization_id, [read, other]) == {"web.fetch"}
