"""The types of JSON data. What may stand inside is said by the modules that check it (`canonical`, `encoding`)."""

from __future__ import annotations

from typing import TypeAlias

from pydantic import JsonValue

JsonObject: TypeAlias = dict[str, JsonValue]
JsonArray: TypeAlias = list[JsonValue]

__all__ = ["JsonArray", "JsonObject", "JsonValue"]
