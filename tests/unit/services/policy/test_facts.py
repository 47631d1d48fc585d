import math
from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from pydantic import BaseModel

from agentic.contract.errors import ProgramFault, RegistryError
from agentic.services.policy.facts import Fact, FactReader, FactRegistry, NoAnswer
from agentic.services.policy.packaged_facts import with_packaged
from agentic.services.policy.recipients import recipient_facts
from agentic.services.policy.url_seen import seen_addresses, url_seen
from agentic.services.tools.context import CallContext
from agentic.services.tools.declarations import internal_tool
from agentic.services.tools.handlers.email import Email
from agentic.services.tools.models import SideEffects
from agentic.services.tools.registry import build_registry
from policy_world import question, spec


async def found(value: Any, kind: Any = "json") -> Any:
    async def resolve(ctx: CallContext, args: BaseModel) -> Any:
        return value

    asked = question()
    reader = FactReader(FactRegistry([Fact(name="f", type=kind, resolve=resolve)]), asked.context, asked.model)
    return (await reader.read(["f"]))["f"]


@pytest.mark.parametrize(
    ("value", "kind", "plain"),
    [
        (Decimal("12.50"), "number", 12.5),
        (Decimal(1200), "number", 1200),
        (Decimal("0.1"), "number", 0.1),
        (7, "number", 7),
        (("a", "b"), "json", ["a", "b"]),
        ({"open": True, "sum": Decimal("2.00")}, "json", {"open": True, "sum": 2}),
    ],
)
async def test_an_answer_becomes_json_that_conditions_compare_exactly(value: Any, kind: Any, plain: Any) -> None:
    assert await found(value, kind) == plain


@pytest.mark.guarantee("D4")
@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (None, "json"),
        (1, "bool"),
        (True, "number"),
        ("1", "number"),
        (math.nan, "number"),
        (Decimal("Infinity"), "number"),
        ({1, 2}, "json"),
        ({1: 2}, "json"),
        ("\ud800", "string"),
        ([[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]], "json"),
    ],
    ids=repr,
)
async def test_an_answer_of_another_kind_is_no_answer(value: Any, kind: Any) -> None:
    assert isinstance(await found(value, kind), NoAnswer)


async def test_a_fact_nobody_knows_is_told_as_that_and_not_as_one_of_another_type() -> None:
    assert await found(None, "bool") == NoAnswer(message="the fact f has no answer")


@pytest.mark.guarantee("D4")
def test_every_fact_a_tool_declares_is_registered_and_none_has_a_reserved_name() -> None:
    class Nothing(BaseModel):
        pass

    @internal_tool("crm.search", "Finds.", policy_facts=("is_new", "principal", "age"))
    async def search(ctx: CallContext, args: Nothing) -> Nothing:
        return args

    with pytest.raises(RegistryError) as refused:
        build_registry([search], facts={"is_new"})
    assert [fault.split(";")[0] for fault in refused.value.faults] == [
        "crm.search: the fact 'principal' cannot be declared",
        "crm.search: nothing finds out the fact 'age'",
    ]


@pytest.mark.parametrize("names", [["run"], ["arguments"], ["principal"], ["Is_new"], ["is-new"], ["a", "a"]])
def test_facts_with_names_that_rules_could_not_tell_apart_are_refused(names: list[str]) -> None:
    async def resolve(ctx: CallContext, args: BaseModel) -> bool:
        return True

    with pytest.raises(ProgramFault, match="fact"):
        FactRegistry([Fact(name=name, resolve=resolve) for name in names])


def test_every_open_egress_tool_declares_whether_its_address_was_seen() -> None:
    async def nothing(ctx: CallContext) -> Iterable[str]:
        return []

    registry = FactRegistry([url_seen(nothing)])
    fetch = spec("web.fetch", side_effects=SideEffects.READ, egress="open")
    assert registry.types_for(fetch) == (("url_seen", "bool"),)
    assert registry.types_for(spec("web.fetch", side_effects=SideEffects.READ)) == ()


class Fetch(BaseModel):
    """Arguments of a tool that fetches."""

    url: Any = None
    also: list[str] = []
    format: str = "markdown"


SAID = 'See https://fjord.example/a?x=1, or [it](https://fjord.example/b_(c)). {"url":"https://fjord.example/d"}\nhttps://fjord.example'


@pytest.mark.parametrize(
    ("arguments", "seen"),
    [
        ({"url": "https://fjord.example/a?x=1"}, True),
        ({"url": "https://fjord.example/b_(c)"}, True),
        ({"url": "https://fjord.example/d"}, True),
        ({"url": "https://fjord.example/"}, True),
        ({"url": "https://fjord.example/d", "also": ["https://fjord.example/a?x=1"]}, True),
        ({"url": "https://fjord.example/a?x=1&secret=7"}, False),
        ({"url": "https://fjord.example/a"}, False),
        ({"url": "https://fjord.example/D"}, False),
        ({"url": "https://evil.example/https://fjord.example/d"}, False),
        ({"url": "https://fjord.example/d secret"}, False),
        ({"url": "https://fjord.example/d", "also": ["https://evil.example/?q=secret"]}, False),
        ({"url": "https://fjord.example/d", "also": ["//evil.example/secret"]}, False),
        ({"url": {"deep": ["https://evil.example/"]}}, False),
        ({"url": "fjord.example/d"}, False),
        ({}, False),
    ],
)
async def test_an_address_counts_as_seen_only_when_all_of_it_stood_there(arguments: dict[str, Any], seen: bool) -> None:
    async def words(ctx: CallContext) -> Iterable[str]:
        return ["nothing here", SAID]

    assert await url_seen(words).resolve(question().context, Fetch(**arguments)) is seen


def test_punctuation_after_an_address_is_read_both_ways() -> None:
    assert seen_addresses(["(https://fjord.example/x)."]) >= {"https://fjord.example/x", "https://fjord.example/x)"}


async def _no_words(_ctx: CallContext) -> list[str]:
    return []


async def _wrote_to_per(_organization_id: UUID, addresses: Sequence[str]) -> list[str]:
    return [address for address in addresses if address.lower() == "per@fjord.example"]


def email(*to: str) -> Email:
    return Email.model_validate({"to": list(to), "subject": "Hello", "body": "Hi"})


@pytest.mark.parametrize(
    ("to", "new"),
    [
        (["per@fjord.example"], 0),
        (["PER@fjord.example", "per@fjord.example"], 0),
        (["per@fjord.example", "ida@nordlys.example"], 1),
        (["ida@nordlys.example", "bo@nordlys.example"], 2),
    ],
)
async def test_new_is_whom_the_organization_never_wrote_to(to: list[str], new: int) -> None:
    is_new, how_many = recipient_facts(_wrote_to_per)
    assert await how_many.resolve(question().context, email(*to)) == new
    assert await is_new.resolve(question().context, email(*to)) is (new > 0)


async def test_a_fact_of_the_package_is_found_outside_rules_and_is_no_answer_of_another_tool() -> None:
    registry = with_packaged([], words=_no_words, written_to=_wrote_to_per)
    context = question().context
    assert await registry.find("new_recipients", context, email("ida@nordlys.example")) == 1
    assert await registry.find("new_recipients", context, question().model) is None
    assert await registry.find("nothing_of_the_kind", context, email("ida@nordlys.example")) is None


async def test_an_app_s_own_fact_of_that_name_counts_and_url_seen_is_not_to_be_replaced() -> None:
    async def ours(ctx: CallContext, args: BaseModel) -> bool:
        return True

    own = Fact(name="recipient_is_new", type="bool", resolve=ours)
    registry = with_packaged([own], words=_no_words, written_to=_wrote_to_per)
    assert registry.get("recipient_is_new") is own
    assert registry.names == {"recipient_is_new", "new_recipients", "url_seen"}
    with pytest.raises(ProgramFault, match="url_seen is declared twice"):
        with_packaged([Fact(name="url_seen", resolve=ours)], words=_no_words, written_to=_wrote_to_per)
