"""Turns whatever a handler returned into plain JSON data: total, so that a finished effect is never lost to its own result.

Conversions:

- date, time, datetime: ISO 8601. timedelta: seconds. UUID, path, IP address, URL-like: their text. Decimal: its exact text.
- Enum: its value. Pydantic model (as it dumps itself, by alias), dataclass, named tuple: an object of its fields. tuple, deque: an array.
- set: an array sorted by encoded form, because the order of a string set changes from process to process.
- bytes: `{"__bytes__": length, "base64": text}` up to 4 KiB, above that the length alone.
- NaN and the infinities: the strings "NaN", "Infinity", "-Infinity".
- U+0000: the visible U+2400, because Postgres refuses it. A lone surrogate: U+FFFD, because UTF-8 cannot carry it.
- a key that is no string: its text. Keys that become equal keep both values, the later one under `key (2)`.
- anything else, and whatever raises while it is read: `<unrenderable TypeName>`. Its text is not used: nobody has checked it.

Sizes shown to a model are `bounds`; secrets are `services.tools.result_boundary`.
"""

from __future__ import annotations

import base64
import dataclasses
import datetime
import enum
import ipaddress
import math
import pathlib
import uuid
from collections import deque
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from decimal import Decimal
from typing import Final

from pydantic import BaseModel

from agentic.contract.encoding import encode
from agentic.contract.json_types import JsonObject, JsonValue

MAX_DEPTH: Final = 64
MAX_NODES: Final = 1_000_000
MAX_CHARACTERS: Final = 64 * 1024 * 1024
MAX_INLINE_BYTES: Final = 4 * 1024
MAX_INTEGER_BITS: Final = 3_300  # about a thousand digits, what the canonical form carries

_AS_TEXT: Final = (
    uuid.UUID,
    Decimal,
    pathlib.PurePath,
    ipaddress.IPv4Address,
    ipaddress.IPv6Address,
    ipaddress.IPv4Network,
    ipaddress.IPv6Network,
)
_NUL_MARKER: Final = "\u2400"
_NAME_OF_TYPE: Final = type.__dict__["__name__"].__get__  # a metaclass may answer anything


def plain(value: object) -> JsonValue:
    """Return `value` as JSON data that `encode` renders and Postgres stores; the module's docstring lists the conversions.

    Never raises for anything a value can do, a raising `__str__` and a self-reference included. Beyond 64 containers deep,
    a million nodes or 64 Mi characters a placeholder stands for the rest.

    Source: J4.
    """
    return _Walk().convert(value, 0)


def clean_text(text: str) -> str:
    """Return `text` with U+0000 made visible and lone surrogates replaced, so that Postgres and UTF-8 carry it."""
    text = str.__str__(text) if type(text) is not str else text
    if "\0" in text:
        text = text.replace("\0", _NUL_MARKER)
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        # Halves that belong together become their character; the others become U+FFFD.
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def free_key(key: str, taken: Mapping[str, object]) -> str:
    """Return `key`, or `key (2)`, `key (3)` … where it is taken; a million equal keys are no more than twenty looks each."""
    if key not in taken:
        return key
    free = 2
    while f"{key} ({free})" in taken:
        free *= 2
    used = free // 2 if free > 2 else 1
    while free - used > 1:  # taken at `used`, free at `free`
        middle = (used + free) // 2
        used, free = (middle, free) if f"{key} ({middle})" in taken else (used, middle)
    return f"{key} ({free})"


class _Walk:
    """One conversion: what is open above the current value, and what is left of the budgets."""

    def __init__(self) -> None:
        self._open: set[int] = set()
        self._nodes = MAX_NODES
        self._characters = MAX_CHARACTERS

    def convert(self, value: object, depth: int) -> JsonValue:
        self._nodes -= 1
        if self._nodes < 0:
            return "<unrenderable: too many values>"
        kind = type(value)  # nearly every value of nearly every answer is one of these three, and none can raise
        if kind is str:
            return self._text(value)  # type: ignore[arg-type]
        if kind is int:
            return _integer(value)  # type: ignore[arg-type]
        if kind is bool or value is None:
            return value  # type: ignore[return-value]
        try:
            return self._convert(value, depth)
        except Exception:  # noqa: BLE001 - whatever a foreign value raises, the effect stays done (J4)
            return _placeholder(value)

    def _convert(self, value: object, depth: int) -> JsonValue:
        kind = type(value)
        if kind is dict or kind is list:
            return self._container(value, depth)
        if isinstance(value, enum.Enum):
            return self.convert(value.value, depth)
        if isinstance(value, str):
            return self._text(value)
        if isinstance(value, int):
            return _integer(value)
        if isinstance(value, float):
            return _real(value)
        if isinstance(value, datetime.datetime | datetime.date | datetime.time):
            return self._text(value.isoformat())  # a subclass may answer anything
        if isinstance(value, datetime.timedelta):
            return _real(value.total_seconds())
        if isinstance(value, _AS_TEXT):
            return self._text(str(value))
        if isinstance(value, bytes | bytearray | memoryview):
            return _binary(bytes(value))
        return self._container(value, depth)

    def _container(self, value: object, depth: int) -> JsonValue:
        if id(value) in self._open:
            return f"<unrenderable: {_type_name(value)} contains itself>"
        if depth >= MAX_DEPTH:
            return f"<unrenderable: {_type_name(value)} nested more than {MAX_DEPTH} deep>"
        self._open.add(id(value))
        try:
            if isinstance(value, dict | Mapping):
                return self._object(value.items(), depth)
            if isinstance(value, list):
                return self._array(value, depth)
            if isinstance(value, BaseModel):
                return self._object(_model_fields(value), depth)
            if dataclasses.is_dataclass(value) and not isinstance(value, type):
                return self._object([(f.name, getattr(value, f.name)) for f in dataclasses.fields(value)], depth)
            if isinstance(value, tuple) and hasattr(value, "_fields"):
                return self._object(list(zip(value._fields, value, strict=True)), depth)
            if isinstance(value, AbstractSet):
                return sorted(self._array(value, depth), key=encode)
            if isinstance(value, tuple | deque):
                return self._array(value, depth)
        finally:
            self._open.discard(id(value))
        return _placeholder(value)

    def _array(self, items: Iterable[object], depth: int) -> list[JsonValue]:
        converted: list[JsonValue] = []
        for item in items:
            converted.append(self.convert(item, depth + 1))
            if self._nodes < 0:
                break
        return converted

    def _object(self, members: Iterable[tuple[object, object]], depth: int) -> JsonObject:
        converted: JsonObject = {}
        for key, item in members:
            name = self._key(key)
            if name in converted:
                name = free_key(name, converted)
            converted[name] = self.convert(item, depth + 1)
            if self._nodes < 0:
                break
        return converted

    def _key(self, key: object) -> str:
        if type(key) is str:
            return self._text(key)
        text = self.convert(key, MAX_DEPTH)
        if isinstance(text, str):
            return text
        return encode(text).decode()

    def _text(self, text: str) -> str:
        # str.__len__, because a subclass may answer anything.
        self._characters -= str.__len__(text)
        return clean_text(text) if self._characters >= 0 else "<unrenderable: too much text>"


def _integer(value: int) -> JsonValue:
    exact = int.__index__(value)
    if exact.bit_length() > MAX_INTEGER_BITS:
        return f"<unrenderable int of {exact.bit_length()} bits>"
    return exact


def _real(value: float) -> JsonValue:
    exact = float.__float__(value)
    if math.isnan(exact):
        return "NaN"
    if math.isinf(exact):
        return "Infinity" if exact > 0 else "-Infinity"
    return exact


def _binary(data: bytes) -> JsonObject:
    if len(data) > MAX_INLINE_BYTES:
        return {"__bytes__": len(data)}
    return {"__bytes__": len(data), "base64": base64.b64encode(data).decode()}


def _model_fields(model: BaseModel) -> list[tuple[object, object]]:
    try:
        # By alias, because the output schema names the fields so; without warnings, because a wrong type is still data.
        return list(model.model_dump(by_alias=True, warnings=False).items())
    except Exception:  # noqa: BLE001 - one field that cannot be dumped must not cost the others
        fields = type(model).model_fields
        return [(field.alias or name, getattr(model, name)) for name, field in fields.items() if not field.exclude]


def _placeholder(value: object) -> str:
    return f"<unrenderable {_type_name(value)}>"


def _type_name(value: object) -> str:
    return clean_text(_NAME_OF_TYPE(type(value)))[:100]
