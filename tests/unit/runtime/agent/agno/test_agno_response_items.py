"""Items of the responses API whose pieces come in turns."""

from types import SimpleNamespace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from agentic.runtime.agent.agno.response_items import ResponseItems

ITEM = "response.output_item"


def parser(_seen: list[dict[str, Any]]) -> Any:
    """The framework's way: one call in hand, given every piece."""

    def parse(event: Any, _message: Any, in_hand: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        if event.type == f"{ITEM}.added":
            in_hand = {"id": event.id, "arguments": ""}
        elif event.type == f"{ITEM}.done" and in_hand:
            _seen.append(in_hand)
            in_hand = {}
        elif event.type.endswith("delta"):
            in_hand["arguments"] += event.delta
        return None, in_hand

    return parse


@given(st.data())
def test_every_call_has_its_own_pieces_and_place_however_they_come_in_turns(data: st.DataObject) -> None:
    texts = data.draw(st.lists(st.text(max_size=6), min_size=1, max_size=4))
    waiting = [
        [SimpleNamespace(type=f"{ITEM}.added", output_index=at, id=f"fc_{at}")]
        + [SimpleNamespace(type="response.function_call_arguments.delta", output_index=at, delta=c) for c in text]
        + [SimpleNamespace(type=f"{ITEM}.done", output_index=at)]
        for at, text in enumerate(texts)
    ]
    seen: list[dict[str, Any]] = []
    items, in_hand = ResponseItems(), {"id": "never", "arguments": ""}
    while any(waiting):
        at = data.draw(st.sampled_from([at for at, events in enumerate(waiting) if events]))
        _, in_hand = items.parse(parser(seen), waiting[at].pop(0), None, in_hand)
    assert [call["arguments"] for call in items.in_order(seen)] == texts


def test_calls_that_came_in_no_item_stay_where_they_are() -> None:
    calls = [{"id": "b"}, {"id": "a"}]
    assert ResponseItems().in_order(calls) is calls
