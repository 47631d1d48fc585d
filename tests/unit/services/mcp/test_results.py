"""What the answer of a remote tool means: done, failed in the server's words, or no answer at all (field case 24)."""

import base64
from typing import Any, cast
from uuid import UUID, uuid4

import pytest

from agentic.contract.bounds import bound
from agentic.services.mcp.results import NO_OUTPUT, Answered, ToolFailed, Unreadable, read_result

SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


class Kept:
    def __init__(self, room: int = 16) -> None:
        self.items: dict[UUID, tuple[bytes, str]] = {}
        self.room = room

    def __call__(self, body: bytes, media_type: str) -> UUID:
        if len(self.items) >= self.room:
            raise ValueError("a call saves at most 16 artifacts")
        id = uuid4()
        self.items[id] = body, media_type
        return id


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def answered(raw: dict[str, Any], kept: Kept | None = None, schema: Any = None) -> dict[str, Any]:
    result = read_result(raw, keep=kept or Kept(), output_schema=schema)
    assert isinstance(result, Answered)
    return result.data


def test_an_error_the_server_reports_is_a_failure_in_its_words_whatever_stands_beside() -> None:
    raw = {"isError": True, "content": [text("no such"), text("page")], "structuredContent": {"n": "off schema"}}
    assert read_result(raw, keep=Kept(), output_schema=SCHEMA) == ToolFailed(words="no such\npage", not_applied=False)


@pytest.mark.parametrize(
    ("structured", "not_applied"),
    [
        ({"effect_status": "not_applied"}, True),
        ({"effect_status": "NOT_APPLIED"}, False),
        ({"effect_status": ["not_applied"]}, False),
        ("not_applied", False),
        (None, False),
    ],
)
def test_that_nothing_was_done_is_asserted_in_one_form_alone(structured: Any, not_applied: bool) -> None:
    raw = {"isError": True, "content": [text("effect_status: not_applied")], "structuredContent": structured}
    result = read_result(raw, keep=Kept())
    assert isinstance(result, ToolFailed) and result.not_applied is not_applied


def test_a_success_off_its_own_schema_is_kept_and_marked() -> None:
    for structured in ({"n": "x"}, {}, None):
        data = answered({"content": [text("good")], "structuredContent": structured}, schema=SCHEMA)
        assert data["structured_invalid"] is True and data["content"] == [text("good")]
    assert answered({"structuredContent": {"n": 1}}, schema=SCHEMA) == {"content": [], "structured": {"n": 1}}


def test_an_empty_answer_says_so_and_one_that_reads_like_an_error_is_none() -> None:
    assert answered({}) == {"content": [], "note": NO_OUTPUT}
    assert answered({"content": [text("Error: all is well")], "isError": False}) == {
        "content": [text("Error: all is well")]
    }
    assert answered({"isError": "true", "content": []})["note"] == NO_OUTPUT


def test_bytes_go_beside_the_answer_and_the_answer_names_them() -> None:
    kept = Kept()
    encoded = base64.b64encode(b"\x89PNG").decode()
    blocks = [
        {"type": "image", "data": encoded, "mimeType": "image/PNG; x=1"},
        {"type": "audio", "data": encoded, "mimeType": "not a type"},
        {"type": "resource", "resource": {"uri": "file:///a", "blob": encoded, "mimeType": "application/pdf"}},
    ]
    data = answered({"content": blocks}, kept)
    assert [kept.items[UUID(block["artifact_id"])] for block in data["content"]] == [
        (b"\x89PNG", "image/png"),
        (b"\x89PNG", "application/octet-stream"),
        (b"\x89PNG", "application/pdf"),
    ]
    assert encoded not in str(data)


@pytest.mark.parametrize(
    "block",
    [
        {"type": "image", "data": "!!notb64", "mimeType": "image/png"},
        {"type": "image", "mimeType": "image/png"},
        {"type": "image", "data": "A" * (12 * 1024 * 1024), "mimeType": "image/png"},
    ],
)
def test_bytes_that_cannot_be_kept_cost_themselves_alone(block: dict[str, Any]) -> None:
    data = answered({"content": [block, text("caption")]})
    assert "left_out" in data["content"][0] and data["content"][1] == text("caption")


def test_more_bytes_than_are_kept_are_said() -> None:
    block = {"type": "image", "data": "QUJD", "mimeType": "image/png"}
    data = answered({"content": [block, block]}, Kept(room=1))
    assert "artifact_id" in data["content"][0] and data["content"][1]["left_out"] == "a call saves at most 16 artifacts"


def test_links_texts_of_resources_and_unknown_blocks_are_data() -> None:
    blocks = [
        {"type": "resource", "resource": {"uri": "note://1", "text": "hello", "mimeType": "text/plain"}},
        {"type": "resource_link", "uri": "file:///x", "name": "x"},
        {"type": "hologram", "payload": 1},
        "no block",
    ]
    assert answered({"content": blocks})["content"] == [
        {"type": "resource", "uri": "note://1", "media_type": "text/plain", "text": "hello"},
        {"type": "resource_link", "uri": "file:///x", "name": "x", "media_type": "application/octet-stream"},
        {"type": "unknown", "reported_type": "hologram"},
        {"type": "unknown"},
    ]


def test_blocks_beyond_the_limit_are_counted() -> None:
    assert answered({"content": [text("x")] * 300})["left_out"] == 44


@pytest.mark.guarantee("B1")
def test_of_a_text_that_is_too_long_head_and_tail_are_shown_and_not_a_marker_alone() -> None:
    long = "first " + "x" * 200_000 + " last"
    resource = {"type": "resource", "resource": {"uri": "note://1", "text": long, "mimeType": "text/plain"}}
    read = read_result(
        {"content": [text("short"), text(long), resource], "structuredContent": {"result": long}}, keep=Kept()
    )
    assert isinstance(read, Answered)
    shown = bound(read.data, 16_384, kept_as="a-1")
    assert isinstance(shown.value, dict)
    short, first, about, second = cast(list[Any], shown.value["content"])
    assert short == text("short")
    assert about == {"type": "resource", "uri": "note://1", "media_type": "text/plain", "text_follows": True}
    for each in (first, second):
        assert each.startswith("first xxx")
        assert each.endswith("xxx last")
        assert "kept as artifact a-1" in each


@pytest.mark.parametrize("raw", [{"content": "text"}, {"content": 7}, {"resultType": "input_required", "content": []}])
def test_what_is_no_answer_is_not_read_as_one(raw: dict[str, Any]) -> None:
    assert isinstance(read_result(raw, keep=Kept()), Unreadable)
