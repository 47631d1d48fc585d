"""When two calls are the same call again."""

import pytest

from agentic.services.tools.keys import repetition_key

KEY = repetition_key("crm.search", '{"name": "Ada", "limit": 10}')


@pytest.mark.parametrize(
    "text",
    [
        '{"limit":10,"name":"Ada"}',
        '\n{ "name" : "Ada",\t"limit" : 10 }\n',
        '{"name": "\\u0041da", "limit": 1e1}',
        '"{\\"name\\": \\"Ada\\", \\"limit\\": 10}"',
    ],
    ids=["order of members", "white space", "spelling of a value", "encoded twice"],
)
def test_the_same_call_worded_anew_has_the_same_key(text: str) -> None:
    assert repetition_key("crm.search", text) == KEY


@pytest.mark.parametrize(
    ("tool", "text"),
    [
        ("crm.find", '{"name": "Ada", "limit": 10}'),
        ("crm.search", '{"name": "Ada", "limit": 11}'),
        ("crm.search", '{"name": "ada", "limit": 10}'),
        ("crm.search", '{"name": "Ada", "limit": "10"}'),
        ("crm.search", '{"name": "Ada", "limit": 10'),
        ("crm.search", None),
    ],
)
def test_another_tool_or_another_value_is_another_call(tool: str, text: str | None) -> None:
    assert repetition_key(tool, text) != KEY


def test_nothing_in_its_several_spellings_is_one_call() -> None:
    assert len({repetition_key("notes.list", text) for text in (None, "", " ", "null", "[]", "{}")}) == 1


@pytest.mark.parametrize(
    "text", ['{"name": ', "Ada, please", '{"a": NaN}', '{"a": "\ud800"}', "[" * 70, '{"a":1,"a":1}']
)
def test_text_that_cannot_be_read_stands_for_itself(text: str) -> None:
    key = repetition_key("crm.search", text)
    assert key == repetition_key("crm.search", text)
    assert key != repetition_key("crm.search", text + " ")


def test_a_name_that_is_no_text_has_a_key_as_well() -> None:
    assert repetition_key("crm\ud800", "{}") != repetition_key("crm", "{}")
