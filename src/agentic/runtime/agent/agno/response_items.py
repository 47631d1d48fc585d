"""Puts the pieces of the responses API's items together, item by item.

agno keeps one call in hand and gives it every piece that arrives, so two calls whose pieces come in turns would become one call
with the arguments of both. Here its parser is handed the call that the piece belongs to.
"""

from collections.abc import Callable
from typing import Any

_OF_AN_ITEM = frozenset(
    {"response.output_item.added", "response.function_call_arguments.delta", "response.output_item.done"}
)

Parse = Callable[[Any, Any, dict[str, Any]], tuple[Any, dict[str, Any]]]
"""agno's parser: event, assistant message and the call in hand, to its delta and the call in hand from there on."""


class ResponseItems:
    """The items of one answer."""

    def __init__(self) -> None:
        self._in_hand: dict[int, dict[str, Any]] = {}
        self._place: dict[str, int] = {}

    def parse(self, parse: Parse, event: Any, message: Any, in_hand: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        """One event through agno's parser."""
        place = getattr(event, "output_index", None)
        if getattr(event, "type", None) not in _OF_AN_ITEM or not isinstance(place, int):
            return parse(event, message, in_hand)
        delta, self._in_hand[place] = parse(event, message, self._in_hand.get(place, {}))
        call_id = self._in_hand[place].get("id")
        if isinstance(call_id, str):
            self._place.setdefault(call_id, place)
        return delta, {}

    def in_order(self, calls: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """The calls in the order of the items, whichever was complete first; others stay where they are."""
        if not all(call.get("id") in self._place for call in calls):
            return calls
        return sorted(calls, key=lambda call: self._place[call["id"]])
