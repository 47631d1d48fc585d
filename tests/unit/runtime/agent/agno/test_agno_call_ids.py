"""Call ids are unique over the history."""

from agno.models.message import Message
from agno_tools import assistant, call
from hypothesis import given
from hypothesis import strategies as st

from agentic.runtime.agent.agno.call_ids import make_unique, used_ids

IDS = st.lists(st.sampled_from(["call_1", "call_2", "toolu_1", "x", ""]), max_size=5)


@given(st.lists(IDS, max_size=4))
def test_no_id_stands_twice_however_the_provider_repeats_them(turns: list[list[str]]) -> None:
    history: list[Message] = []
    for ids in turns:
        answer = assistant(*(call(i) for i in ids))
        make_unique(answer, history)
        history.append(answer)
    every = [c["id"] for message in history for c in message.tool_calls or []]
    assert len(every) == len(set(every))
    assert "" not in every
    assert used_ids(history) == set(every)


@given(st.lists(st.uuids(), unique=True, max_size=5))
def test_ids_that_are_unique_already_stay_what_the_provider_said(ids: list[object]) -> None:
    answer = assistant(*(call(str(i)) for i in ids))
    make_unique(answer, [])
    assert [c["id"] for c in answer.tool_calls or []] == [str(i) for i in ids]


def test_a_renamed_id_keeps_its_prefix_and_both_ids_of_a_responses_call_change() -> None:
    earlier = assistant({**call("fc_1"), "call_id": "call_1"})
    later = assistant({**call("fc_2"), "call_id": "call_1"})
    make_unique(later, [earlier])
    renamed = (later.tool_calls or [])[0]
    assert renamed["id"].startswith("fc_")
    assert renamed["call_id"].startswith("call_")
    assert not {renamed["id"], renamed["call_id"]} & {"fc_1", "call_1"}
