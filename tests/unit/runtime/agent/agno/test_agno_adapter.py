"""A run's tools as functions an agent may be shown."""

import pytest
from agno_tools import assistant, call, frozen

from agentic.contract.errors import RegistryError
from agentic.runtime.agent.agno import messages
from agentic.runtime.agent.agno.adapter import functions, shorten
from agentic.services.tools.models import MAX_MODEL_TOOLS, Mode


async def _entry(call_id: str) -> str:
    return call_id


def test_a_paused_tool_has_no_callable_and_the_loop_stops_at_it() -> None:
    read, write = functions([frozen("crm.search"), frozen("crm.upsert", mode=Mode.PAUSED)], _entry)
    assert (write.entrypoint, write.external_execution, write.external_execution_silent) == (None, True, True)
    assert read.entrypoint is not None
    assert not read.external_execution


@pytest.mark.guarantee("N1")
def test_a_platform_name_goes_to_its_model_facing_name_and_back() -> None:
    tools = [frozen("crm.search_people"), frozen("mail.send.now", mode=Mode.PAUSED)]
    shown = [function.name for function in functions(tools, _entry)]
    assert shown == ["crm_search_people", "mail_send_now"]
    back = messages.proposed(assistant(*(call(f"call_{i}", name) for i, name in enumerate(shown))), tools)
    assert [proposed.tool for proposed in back] == [tool.spec.name for tool in tools]


@pytest.mark.guarantee("N1")
def test_clashing_reserved_and_overlong_names_are_refused_all_at_once() -> None:
    long = "crm." + "x" * 64
    tools = [frozen("crm.a_b"), frozen("crm.a.b"), frozen("ask.user"), frozen("get_user.input"), frozen(long)]
    with pytest.raises(RegistryError) as refused:
        functions(tools, _entry)
    assert len(refused.value.faults) == 4
    for named in ("crm.a.b, crm.a_b", "ask.user", "get_user.input", long):
        assert any(named in fault for fault in refused.value.faults)


def test_more_tools_than_a_provider_takes_are_refused_with_their_number() -> None:
    with pytest.raises(RegistryError, match=f"{MAX_MODEL_TOOLS + 1} tools"):
        functions([frozen(f"crm.t{i}") for i in range(MAX_MODEL_TOOLS + 1)], _entry)


@pytest.mark.parametrize(("given", "kept"), [(1024, 1024), (1025, 1024), (3000, 1024)])
def test_a_description_keeps_within_the_cap_and_shows_its_cut(given: int, kept: int) -> None:
    short = shorten("x" * given)
    assert len(short) == kept
    assert short.endswith("[cut]") == (given > kept)
