"""Makes a value fit a number of bytes: whole, valid, and honest about what was left out.

Pure. Which limit holds, naming the row behind a marker and keeping the full value are `services.tools.result_boundary` and
its callers; the size is always the one `encoding.encode` gives.

What happens to a value that does not fit:

- An array keeps its items at their index. An item that alone is over the limit becomes a marker; then items are dropped from the end.
- An object keeps its keys. A text or an array in it is shortened to a fair share of the room; an object in it that alone is
  over the limit becomes a marker, unless an array inside is what is too large, which is then shortened where it stands. Then
  members are dropped from the end.
- A text keeps its head and its tail around a note of what is left out.
- Where even a marker does not fit, the value becomes the empty text.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, TypeGuard

from agentic.contract.encoding import encoded_size
from agentic.contract.excerpt import excerpt
from agentic.contract.json_types import JsonObject, JsonValue

DROPPED_KEY: Final = "__dropped__"
MIN_BYTES: Final = 2
MIN_SHARE_BYTES: Final = 256
MAX_PATHS: Final = 50
_MAX_KEY_IN_PATH: Final = 64
_MAX_CHARACTER_BYTES: Final = 6


@dataclass(frozen=True, kw_only=True)
class Bounded:
    """What is left of a value under a limit.

    Attributes:
        value: data of which `encode` gives at most the limit.
        truncated: whether anything was left out or replaced.
        dropped: where, as JSON Pointers (`""` is the whole value, `/7-41` a run of items); at most 50, then a count.
    """

    value: JsonValue
    truncated: bool
    dropped: tuple[str, ...] = ()


def bound(value: JsonValue, max_bytes: int, *, kept_as: str | None = None) -> Bounded:
    """Return `value` in at most `max_bytes` bytes; a value that fits comes back as it is.

    Args:
        value: data as `plain` returns it.
        max_bytes: at least 2, what `""`, `[]` and `{}` need.
        kept_as: id of the artifact that keeps the whole, for the notes in shortened texts.

    Raises:
        ValueError: `max_bytes` is under 2, or `value` is not plain data.

    Source: B1, ADR 0014.
    """
    if max_bytes < MIN_BYTES:
        raise ValueError(f"max_bytes is {max_bytes}; the smallest JSON value needs {MIN_BYTES}")
    if encoded_size(value) <= max_bytes:
        return Bounded(value=value, truncated=False)
    paths: list[str] = []
    fitted = _Fitting(kept_as).fit(value, max_bytes, "", paths)
    if len(paths) > MAX_PATHS:
        paths[MAX_PATHS:] = [f"and {len(paths) - MAX_PATHS} more"]
    return Bounded(value=fitted, truncated=True, dropped=tuple(paths))


def marker(size: int) -> JsonObject:
    """Return what stands for an item of `size` encoded bytes that was left out."""
    return {DROPPED_KEY: {"reason": "too_large", "bytes": size}}


def is_marker(value: JsonValue) -> TypeGuard[JsonObject]:
    """Say whether `value` stands for an item that `bound` left out."""
    return isinstance(value, dict) and len(value) == 1 and isinstance(value.get(DROPPED_KEY), dict)


class _Fitting:
    """One way from a value that does not fit to one that does."""

    def __init__(self, kept_as: str | None) -> None:
        self._kept_as = kept_as

    def fit(self, value: JsonValue, room: int, path: str, paths: list[str]) -> JsonValue:
        """`value` in at most `room` bytes; the caller knows that it does not fit and that `room` is at least 2."""
        if isinstance(value, list):
            return self._array(value, room, path, paths)
        if isinstance(value, dict):
            return self._object(value, room, path, paths)
        paths.append(path)
        if isinstance(value, str) and (shortened := excerpt(value, room, kept_as=self._kept_as)) is not None:
            return shortened
        stand_in = marker(encoded_size(value))
        return stand_in if encoded_size(stand_in) <= room else ""

    def _array(self, items: list[JsonValue], room: int, path: str, paths: list[str]) -> list[JsonValue]:
        kept: list[JsonValue] = []
        replaced: list[str] = []
        left = room - 2  # the brackets
        share = min(left, _share_of_texts(items, room))
        for index, item in enumerate(items):
            here, size = f"{path}/{index}", encoded_size(item)
            if size > room:
                item, size = self._stand_in(item, size, share)
                replaced.append(here)
            cost = size + (1 if kept else 0)
            if cost > left:
                last = len(items) - 1
                paths += [found for found in replaced if found != here]
                paths.append(here if index == last else f"{here}-{last}")
                return kept
            kept.append(item)
            left -= cost
        paths += replaced
        return kept

    def _stand_in(self, item: JsonValue, size: int, share: int) -> tuple[JsonValue, int]:
        """An item of an array that alone is too large: an excerpt of a text, a marker for anything else."""
        shortened = excerpt(item, share, kept_as=self._kept_as) if isinstance(item, str) else None
        result: JsonValue = shortened if shortened is not None else marker(size)
        return result, encoded_size(result)

    def _object(self, members: JsonObject, room: int, path: str, paths: list[str]) -> JsonObject:
        sizes = {key: encoded_size(item) for key, item in members.items()}
        names = {key: encoded_size(key) + 1 for key in members}
        flexible = {key for key, item in members.items() if _is_flexible(item, room)}
        fixed = 2 + sum(names.values()) + len(members) - 1
        for key in members:
            if key not in flexible:
                fixed += sizes[key] if sizes[key] <= room else encoded_size(marker(sizes[key]))
        fair = _fair_share([sizes[key] for key in flexible], room - fixed)
        # Many small shares would leave a shred of each; the first ones in readable length serve better.
        share = max(fair, min(MIN_SHARE_BYTES, room - fixed), MIN_BYTES)
        kept: JsonObject = {}
        left = room - 2  # the braces
        for index, (key, item) in enumerate(members.items()):
            here = f"{path}/{_pointer(key)}"
            size, inner = sizes[key], list[str]()
            if key in flexible and size > share:
                item = self.fit(item, share, here, inner)
            elif size > room:
                item, inner = marker(size), [here]
            cost = names[key] + (encoded_size(item) if inner else size) + (1 if kept else 0)
            if cost > left:
                paths += [f"{path}/{_pointer(name)}" for name in list(members)[index:]]
                return kept
            paths += inner
            kept[key] = item
            left -= cost
        return kept


def _share_of_texts(items: list[JsonValue], room: int) -> int:
    """How much each text that alone is over the limit may take beside the other items; 0 where there is none.

    Only then is every item measured: an array is mostly over its limit by the number of its items.
    """
    texts = sum(isinstance(item, str) and _over(item, room) for item in items)
    if not texts:
        return 0
    sizes = map(encoded_size, items)
    rest = sum(min(size, encoded_size(marker(size))) if size > room else size for size in sizes) + len(items) + 1
    return max(MIN_SHARE_BYTES, (room - rest) // texts)


def _over(text: str, room: int) -> bool:
    """Whether a text takes more than `room` bytes. One that is short enough cannot: no character takes more than six."""
    return len(text) * _MAX_CHARACTER_BYTES + 2 > room and encoded_size(text) > room


def _is_flexible(item: JsonValue, room: int) -> bool:
    """Whether a member can be shown in part: a text, an array, or an object that is large because of an array in it."""
    if isinstance(item, dict):
        return any(_is_large_array(inner, room) for inner in item.values())
    return isinstance(item, str | list)


def _is_large_array(item: JsonValue, room: int) -> bool:
    if isinstance(item, dict):
        return any(_is_large_array(inner, room) for inner in item.values())
    return isinstance(item, list) and encoded_size(item) > room


def _fair_share(sizes: list[int], room: int) -> int:
    """The largest share so that members cut to it fit `room` together; what small ones leave goes to the large ones."""
    share = 0
    for taken, size in enumerate(sorted(sizes)):
        share = room // (len(sizes) - taken)
        if size > share:
            return share
        room -= size
    return max(share, room)


def _pointer(key: str) -> str:
    return key[:_MAX_KEY_IN_PATH].replace("~", "~0").replace("/", "~1")
