"""What the tools declare: how much they answer and take, whose words they give back, and which columns anybody sees."""

from typing import cast

import pytest

from agentic.contract.trust import Trust
from agentic.services.tools.declarations import Tool
from agentic.services.tools.handlers.crm import companies, crm_tools, lists, people
from agentic.services.tools.handlers.crm.company_tools import WholeCompany
from agentic.services.tools.handlers.crm.list_tools import FoundList
from agentic.services.tools.handlers.crm.people_tools import WholePerson
from agentic.services.tools.handlers.memory import memory_tools, remembered
from agentic.services.tools.handlers.memory.tools import Memory
from agentic.services.tools.models import IdempotencyClass, Risk, SideEffects
from agentic.services.tools.registry import build_registry
from agentic.services.tools.scoped_db import ScopedDatabase

TOOLS: dict[str, Tool] = {
    tool.spec.name: tool for make in (crm_tools, memory_tools) for tool in make(cast("ScopedDatabase", None))
}
READS = {name for name, tool in TOOLS.items() if tool.spec.side_effects is SideEffects.READ}


def test_the_tools_can_be_registered_together() -> None:
    assert {tool.spec.name for tool in build_registry(list(TOOLS.values()))} == set(TOOLS)


@pytest.mark.parametrize("name", sorted(TOOLS))
def test_a_write_may_be_made_again_and_is_one_effect_of_a_run(name: str) -> None:
    spec = TOOLS[name].spec
    if name in READS:
        assert spec.idempotency is IdempotencyClass.READ_ONLY
    else:
        assert (spec.side_effects, spec.idempotency, spec.repeatable) == (
            SideEffects.WRITE,
            IdempotencyClass.IDEMPOTENT,
            False,
        )


def test_hiding_a_record_is_what_a_person_is_asked_about_and_sees_named() -> None:
    asked = {name for name, tool in TOOLS.items() if tool.spec.risk is Risk.HIGH}
    assert asked == {"crm.delete_person", "crm.delete_company"}
    assert {name for name, tool in TOOLS.items() if tool.preview is not None} == asked
    assert {tool.spec.risk for name, tool in TOOLS.items() if name not in asked} == {Risk.LOW}


@pytest.mark.guarantee("B3")
def test_every_read_of_the_crm_answers_words_of_others() -> None:
    assert {TOOLS[name].spec.output_trust for name in READS if name.startswith("crm.")} == {Trust.EXTERNAL}


@pytest.mark.parametrize("name", ["crm.search_people", "crm.search_companies", "crm.search_lists", "memory.recall"])
def test_a_search_is_bounded_and_names_what_one_result_is(name: str) -> None:
    spec = TOOLS[name].spec
    assert spec.max_results == spec.input_schema["properties"]["limit"]["maximum"]  # type: ignore[index,call-overload]
    assert spec.item_kind is not None


@pytest.mark.parametrize("name", ["crm.add_to_list", "crm.remove_from_list"])
def test_a_batch_is_bounded(name: str) -> None:
    assert (TOOLS[name].spec.batch_argument, TOOLS[name].spec.max_batch_size) == ("person_ids", 50)


@pytest.mark.guarantee("T2")
@pytest.mark.parametrize("name", sorted(TOOLS))
def test_no_argument_names_an_organization_a_user_or_a_trust(name: str) -> None:
    arguments = set(TOOLS[name].spec.input_schema["properties"])  # type: ignore[arg-type]
    assert arguments.isdisjoint(
        {"organization_id", "organization", "user_id", "trust", "name_key", "search_text", "deleted_at"}
    )


def test_the_columns_that_are_read_are_those_that_are_shown() -> None:
    beside = {"company", "company_domain"}  # of the person's company
    assert set(people.PERSON.columns) == set(WholePerson.model_fields) - beside
    assert set(companies.COMPANY.columns) == set(WholeCompany.model_fields)
    assert set(lists.LIST.columns) == set(FoundList.model_fields)
    assert set(remembered.COLUMNS) == set(Memory.model_fields)
    hidden = {
        "organization_id",
        "name_key",
        "email_key",
        "domain_key",
        "live_name_key",
        "live_email_key",
        "live_domain_key",
        "search_text",
        "deleted_at",
    }
    for columns in (people.PERSON.columns, companies.COMPANY.columns, lists.LIST.columns, remembered.COLUMNS):
        assert hidden.isdisjoint(columns)
