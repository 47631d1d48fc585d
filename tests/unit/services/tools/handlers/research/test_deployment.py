"""What a deployment gives: keys that nobody reads back, addresses that keys may go to, prices, and the tools made of them."""

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from agentic.contract.errors import ProgramFault
from agentic.services.tools.context import answer_reserve_s
from agentic.services.tools.declarations import Tool
from agentic.services.tools.handlers.research import ResearchKeys, ResearchOrigins, ResearchPrices, research_tools
from agentic.services.tools.models import SideEffects
from agentic.services.tools.registration import URL_SEEN, clashes, tool_faults

KEYS = ResearchKeys(
    exa="exa-key-of-nobody",
    parallel="parallel-key-of-nobody",
    firecrawl="fc-key-of-nobody",
    hunter="hunter-key-of-nobody",
)
TOOLS = research_tools(KEYS)
NAMES = {
    "exa": {"research.search_web", "research.search_people", "research.discover_people"},
    "parallel": {"research.search_company"},
    "firecrawl": {"research.scrape_page"},
    "hunter": {"research.discover_people", "research.find_contact", "research.enrich_company"},
}


def named(tool: Tool) -> str:
    return tool.spec.name


@pytest.mark.guarantee("B2")
def test_a_key_is_in_no_repr() -> None:
    assert "nobody" not in repr(KEYS)
    assert all("nobody" not in repr(tool) for tool in TOOLS)


@pytest.mark.parametrize("key", ["", "short", "with a blank in it", "new\nline-key", "schlüssel-key"])
def test_what_cannot_be_a_key_is_refused_by_its_vendor_and_not_quoted(key: str) -> None:
    with pytest.raises(ProgramFault, match="the API key of hunter") as refused:
        ResearchKeys(hunter=key)
    assert not key or key not in str(refused.value)


def test_a_key_goes_to_its_vendor_or_to_this_machine() -> None:
    assert ResearchOrigins(exa="http://127.0.0.1:8000").exa == "http://127.0.0.1:8000"
    for elsewhere in ("https://exa.example", "https://api.exa.ai.example", "https://api.hunter.io"):
        with pytest.raises(ProgramFault, match="only a stand-in on this machine"):
            ResearchOrigins(exa=elsewhere)


@pytest.mark.parametrize("vendor", sorted(NAMES))
def test_a_vendor_without_a_key_has_no_tools(vendor: str) -> None:
    only: dict[str, Any] = {vendor: getattr(KEYS, vendor)}
    assert {named(tool) for tool in research_tools(ResearchKeys(**only))} == NAMES[vendor]
    assert research_tools(ResearchKeys()) == []


@pytest.mark.parametrize("amount", [Decimal("-0.01"), Decimal("NaN"), Decimal("Infinity"), 0.007])
def test_what_is_no_price_is_refused(amount: Any) -> None:
    with pytest.raises(ProgramFault, match="exa_request must be a finite Decimal"):
        ResearchPrices(exa_request=amount)


@pytest.mark.parametrize("tool", TOOLS, ids=named)
def test_every_research_tool_can_be_registered_and_is_a_metered_read_of_text_from_outside(tool: Tool) -> None:
    assert tool_faults(tool, facts={URL_SEEN}) == []
    assert list(clashes([each.spec for each in TOOLS])) == []
    spec = tool.spec
    assert (spec.kind, spec.metered, spec.side_effects, spec.output_trust) == (
        "vendor",
        True,
        SideEffects.READ,
        "external",
    )
    assert spec.egress == ("open" if spec.name == "research.scrape_page" else "none")
    assert spec.max_results == (10 if spec.output_schema["type"] == "array" else None)


@pytest.mark.parametrize("tool", TOOLS, ids=named)
def test_the_full_vendor_retry_budget_fits_inside_the_declared_tool_timeout(tool: Tool) -> None:
    assert tool.retries is not None
    assert tool.retries.attempts > 1
    assert tool.retries.total_s + answer_reserve_s(tool.spec.timeout_s) <= tool.spec.timeout_s
    shorter = replace(tool, spec=tool.spec.model_copy(update={"timeout_s": tool.retries.total_s}))
    assert any("retries may take" in fault for fault in tool_faults(shorter, facts={URL_SEEN}))


def test_the_bound_of_a_call_follows_the_plan_s_prices() -> None:
    prices = ResearchPrices(
        exa_request=Decimal("0.01"),
        firecrawl_credit=Decimal("0.002"),
        hunter_credit=Decimal("0.03"),
        hunter_enrichment_credits=Decimal(1),
    )
    bounds = {named(tool): tool.spec.cost_bound for tool in research_tools(KEYS, prices=prices)}
    assert bounds["research.search_web"] == Decimal("0.01")
    assert bounds["research.scrape_page"] == Decimal("0.06")
    assert bounds["research.discover_people"] == bounds["research.find_contact"] == Decimal("0.03")
    assert bounds["research.enrich_company"] == Decimal("0.03")


def test_keys_and_addresses_are_read_from_the_environment() -> None:
    keys = ResearchKeys.from_environment({"EXA_API_KEY": "exa-key-of-nobody", "HUNTER_API_KEY": ""})
    assert (keys.exa, keys.parallel, keys.firecrawl, keys.hunter) == ("exa-key-of-nobody", None, None, None)
    origins = ResearchOrigins.from_environment({"EXA_ORIGIN": "http://127.0.0.1:4000", "PARALLEL_ORIGIN": ""})
    assert (origins.exa, origins.parallel) == ("http://127.0.0.1:4000", "https://api.parallel.ai")
    with pytest.raises(ProgramFault, match="only a stand-in"):
        ResearchOrigins.from_environment({"HUNTER_ORIGIN": "https://elsewhere.example"})
