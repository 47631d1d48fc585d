"""Which lines of a long run are printed: its beginning, its end, and what went otherwise in between. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

T = TypeVar("T")
Json = Mapping[str, Any]
FIRST_SPANS, LAST_SPANS, ODD_SPANS = 30, 60, 40
FIRST_LINES, LAST_LINES = 10, 30


def kept_spans(spans: Sequence[Json]) -> frozenset[str]:
    """Ids of the spans that a bounded tree prints, with all they hang under.

    Args:
        spans: of one run, in the order of their start.
    """
    if len(spans) <= FIRST_SPANS + LAST_SPANS + ODD_SPANS:
        return frozenset(span["id"] for span in spans)
    middle = spans[FIRST_SPANS:-LAST_SPANS]
    odd = [span for span in middle if _is_odd(span)][-ODD_SPANS:]
    parents = {span["id"]: span["parent_id"] for span in spans}
    kept: set[str] = set()
    for span in (*spans[:FIRST_SPANS], *odd, *spans[-LAST_SPANS:]):
        at: str | None = span["id"]
        while at is not None and at in parents and at not in kept:
            kept.add(at)
            at = parents[at]
    return frozenset(kept)


def ends(items: Sequence[T]) -> tuple[Sequence[T], int, Sequence[T]]:
    """The first and last of many, and how many are left out in between."""
    left_out = len(items) - FIRST_LINES - LAST_LINES
    return (items, 0, ()) if left_out <= 0 else (items[:FIRST_LINES], left_out, items[-LAST_LINES:])


def _is_odd(span: Json) -> bool:
    """A call that failed, waits, was replayed or took several attempts; the rest of many is alike."""
    attributes = span["attributes"] or {}
    return (
        span["state"] == "open"
        or span["status"] != "ok"
        or bool(attributes.get("replayed"))
        or attributes.get("policy.effect") == "require_approval"
        or attributes.get("call.attempt", 1) != 1
    )
