"""Which calls of an answer run in the loop, which wait, and which never run."""

from typing import Literal, cast

from agno_tools import frozen
from hypothesis import given
from hypothesis import strategies as st

from agentic.runtime.agent.agno.router import Route, route
from agentic.runtime.agent.ports import ProposedCall
from agentic.services.tools.models import Mode

TOOLS = (frozen("crm.search"), frozen("crm.upsert", mode=Mode.PAUSED), frozen("crm.export", mode=Mode.PAUSED))
Fault = Literal["cut_off", "unknown_tool"] | None
FAULTS: list[Literal["cut_off"] | None] = [None, "cut_off"]
CALLS = st.lists(
    st.one_of(
        st.tuples(st.sampled_from([tool.spec.name for tool in TOOLS]), st.sampled_from(FAULTS)),
        st.tuples(st.just("drop_table"), st.just("unknown_tool")),
    ),
    max_size=12,
).map(
    lambda chosen: [
        ProposedCall(
            ordinal=i,
            model_call_id=f"call_{i}",
            model_name=tool,
            tool=tool,
            arguments_text="{}",
            fault=cast(Fault, fault),
        )
        for i, (tool, fault) in enumerate(chosen)
    ]
)


@given(CALLS)
def test_every_call_is_routed_once_and_in_the_models_order(calls: list[ProposedCall]) -> None:
    assert [routed.call for routed in route(calls, TOOLS)] == calls


@given(CALLS)
def test_only_whole_known_reads_that_nothing_waits_before_run_inline(calls: list[ProposedCall]) -> None:
    for i, routed in enumerate(route(calls, TOOLS)):
        before = calls[: i + 1]
        inline = all(call.fault is None and call.tool == "crm.search" for call in before)
        assert (routed.route is Route.INLINE) == inline


@given(CALLS)
def test_a_call_with_a_fault_is_a_ghost_wherever_it_stands(calls: list[ProposedCall]) -> None:
    for routed in route(calls, TOOLS):
        assert (routed.route is Route.GHOST) == (routed.call.fault is not None)
