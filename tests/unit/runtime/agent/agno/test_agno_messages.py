"""The log of a run as agno's messages, and back."""

import json

import pytest
from agno.models.message import Message
from agno_tools import assistant, call, frozen, result
from hypothesis import given
from hypothesis import strategies as st

from agentic.contract.errors import ProgramFault, RunEnded
from agentic.contract.trust import Trust
from agentic.runtime.agent.agno import messages
from agentic.runtime.agent.ports import Answer, ProposedCall, RunMessage
from agentic.services.tools.models import Mode

TOOLS = (frozen("crm.search"), frozen("email.send", mode=Mode.PAUSED))


@given(st.permutations(range(4)), st.permutations(range(3)))
def test_results_are_rendered_in_call_order_whatever_the_order_of_the_log(first: list[int], second: list[int]) -> None:
    turns = [(first, "a"), (second, "b")]
    log = [Message(role="user", content="hi")]
    expected: list[str | None] = []
    for order, turn in turns:
        ids = [f"{turn}{i}" for i in range(len(order))]
        log += [assistant(*(call(i) for i in ids)), *(result(ids[i]) for i in order)]
        expected += ids
    rendered = messages.render(log)
    assert [m.tool_call_id for m in rendered if m.role == "tool"] == expected
    assert [m.role for m in rendered] == ["user", "assistant", *["tool"] * 4, "assistant", *["tool"] * 3]


def test_what_a_read_attached_follows_all_results_of_its_answer() -> None:
    media = Message(role="user", content="The tool call above generated the attached media.")
    log = [assistant(call("1"), call("2")), result("1"), media, result("2")]
    assert [m.role for m in messages.render(log)] == ["assistant", "tool", "tool", "user"]


def test_an_id_used_again_in_a_later_answer_keeps_each_result_with_its_own_answer() -> None:
    log = [assistant(call("1")), result("1", "first"), assistant(call("1")), result("1", "second")]
    assert [m.content for m in messages.render(log) if m.role == "tool"] == ["first", "second"]


def test_a_call_without_an_answer_is_never_sent() -> None:
    with pytest.raises(ProgramFault, match=r"call 2 .* has no answer"):
        messages.render([assistant(call("1"), call("2")), result("1")])


@given(st.text())
def test_any_text_survives_storage(text: str) -> None:
    stored = messages.user(text)
    assert messages.load(stored).content == text
    assert messages.load(stored).id == stored.id


def test_a_lone_surrogate_is_stored_as_the_replacement_character() -> None:
    assert messages.load(messages.user("a\ud800b")).content == "a\ufffdb"


def test_the_frameworks_parsed_copy_of_arguments_is_not_stored() -> None:
    message = Message(role="tool", tool_call_id="1", tool_name="x", content="ok", tool_args={"subject": None})
    assert "tool_args" not in json.loads(messages.dump(message, Trust.INTERNAL).body)


def test_the_same_answer_appended_again_has_the_same_id() -> None:
    proposed = ProposedCall(
        ordinal=0, model_call_id="call_1", model_name="crm_search", tool="crm.search", arguments_text=""
    )
    given_answer = Answer(text="ok", trust=Trust.EXTERNAL)
    first, second = messages.answer(proposed, given_answer), messages.answer(proposed, given_answer)
    assert (first.id, first.trust) == (second.id, Trust.EXTERNAL)
    assert messages.load(first).tool_name == "crm_search"


@pytest.mark.parametrize("body", [b"", b"[]", b"null", b'{"content": "no role"}', b"\xff"])
def test_a_body_that_is_no_message_ends_the_run_as_unreadable(body: bytes) -> None:
    with pytest.raises(RunEnded) as ended:
        messages.load(RunMessage(id="m", role="user", body=body, trust=Trust.USER))
    assert ended.value.code == "history_unreadable"


def test_open_calls_are_those_of_the_last_answer_that_nothing_answers() -> None:
    log = [assistant(call("0")), result("0"), assistant(call("1"), call("2", "email_send"), call("3")), result("1")]
    opened = messages.open_calls(log, TOOLS)
    assert [(c.ordinal, c.model_call_id, c.tool) for c in opened] == [(1, "2", "email.send"), (2, "3", "crm.search")]
    assert messages.open_calls([Message(role="user", content="hi")], TOOLS) == []
    assert messages.open_calls([assistant(stop="stop", content="done")], TOOLS) == []


@pytest.mark.parametrize(
    ("stop", "fault"), [("tool_calls", None), ("length", "cut_off"), ("max_tokens", "cut_off"), (None, "cut_off")]
)
def test_the_stored_stop_reason_decides_whether_a_call_is_whole(stop: str | None, fault: str | None) -> None:
    stored = messages.dump(assistant(call("1"), stop=stop), Trust.USER)
    assert [c.fault for c in messages.open_calls([messages.load(stored)], TOOLS)] == [fault]


@pytest.mark.parametrize(
    "broken",
    [{"id": "1"}, {"id": "1", "type": "function"}, {"id": "1", "type": "custom", "function": {"name": "crm_search"}}],
)
def test_a_call_that_is_not_a_function_call_has_no_tool(broken: dict[str, object]) -> None:
    assert [c.fault for c in messages.proposed(assistant(broken), TOOLS)] == ["unknown_tool"]
