"""From the raw answer of a call to what it means here: data of a stranger, or a refusal in a stranger's words.

Total: whatever stands in an answer, the effect may have happened, so nothing in here raises for it (J4).
"""

import base64
import binascii
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol
from uuid import UUID

from agentic.contract.json_types import JsonArray, JsonObject
from agentic.services.tools.artifacts import MAX_ARTIFACT_BYTES
from agentic.services.tools.schemas import SchemaRefused, validator_for

MAX_BLOCKS: Final = 256
LONG_TEXT: Final = 1_000
"""Characters beyond which a text stands in a list by itself. There its head and tail are shown where the whole is too much (B1)."""
NO_OUTPUT: Final = "The tool answered without output."
_MEDIA_TYPE: Final = re.compile(r"[a-z0-9][a-z0-9!#$&^_.+-]{0,63}/[a-z0-9][a-z0-9!#$&^_.+-]{0,63}")
_UNNAMED: Final = "application/octet-stream"
_MAX_URI: Final = 2_048
_MAX_WORDS: Final = 8_000


class Keeps(Protocol):
    """Keeps bytes beside the answer; ``CallContext.save_artifact``."""

    def __call__(self, body: bytes, media_type: str) -> UUID:
        """Return the artifact's id.

        Raises:
            ValueError: too large, or too many of them.
        """
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class Answered:
    """The tool did what it does."""

    data: JsonObject


@dataclass(frozen=True, kw_only=True, slots=True)
class ToolFailed:
    """The server says that the tool failed."""

    words: str
    """Its own, at most 8,000 characters."""
    not_applied: bool
    """It also asserts, in the one form that counts, that there was no effect."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Unreadable:
    """Not the answer of a call."""

    why: str


def read_result(
    raw: Mapping[str, Any], *, keep: Keeps, output_schema: Mapping[str, Any] | None = None
) -> Answered | ToolFailed | Unreadable:
    """Say what an answer means.

    Args:
        keep: takes images, sounds and other bytes; the data names where they went.
        output_schema: as the server declared it. An answer off it is marked and kept: the call is done.
    """
    content = raw.get("content", [])
    structured = raw.get("structuredContent")
    if raw.get("resultType") not in (None, "complete"):
        return Unreadable(why="the server wants to ask something in the middle of a call")
    if not isinstance(content, Sequence) or isinstance(content, str):
        return Unreadable(why="its content is no list")
    if raw.get("isError") is True:
        return ToolFailed(words=_words(content, structured), not_applied=_not_applied(structured))
    data: JsonObject = {"content": in_parts(_block(block, keep) for block in content[:MAX_BLOCKS])}
    if len(content) > MAX_BLOCKS:
        data["left_out"] = len(content) - MAX_BLOCKS
    if structured is not None:
        data["structured"] = structured
    if output_schema is not None and not _fits(structured, output_schema):
        data["structured_invalid"] = True
    if not content and structured is None:
        data["note"] = NO_OUTPUT
    return Answered(data=data)


def in_parts(blocks: Iterable[JsonObject]) -> JsonArray:
    """The blocks of an answer as a list in which a long text can be shortened, and is not left out as a part of its block."""
    shown: JsonArray = []
    for block in blocks:
        text = block.get("text")
        if not isinstance(text, str) or len(text) <= LONG_TEXT:
            shown.append(block)
        elif block["type"] == "text":
            shown.append(text)
        else:
            shown += [{**{name: each for name, each in block.items() if name != "text"}, "text_follows": True}, text]
    return shown


def _not_applied(structured: object) -> bool:
    return isinstance(structured, Mapping) and structured.get("effect_status") == "not_applied"


def _fits(structured: object, schema: Mapping[str, Any]) -> bool:
    if not isinstance(structured, dict):
        return False
    try:
        return not validator_for(schema, closed=False).problems(structured)
    except SchemaRefused:
        return True  # nothing was promised that can be looked at


def _words(content: Sequence[Any], structured: object) -> str:
    """What a failure says, of its texts."""
    texts = [
        block["text"]
        for block in content[:MAX_BLOCKS]
        if isinstance(block, Mapping) and block.get("type") == "text" and isinstance(block.get("text"), str)
    ]
    said = "\n".join(texts)[:_MAX_WORDS]
    if said.strip():
        return said
    return str(structured)[:_MAX_WORDS] if structured is not None else ""


def _block(block: object, keep: Keeps) -> JsonObject:
    if not isinstance(block, Mapping):
        return {"type": "unknown"}
    kind = block.get("type")
    text = block.get("text")
    if kind == "text" and isinstance(text, str):
        return {"type": "text", "text": text}
    if kind in ("image", "audio"):
        return {"type": str(kind), **_kept(block.get("data"), block.get("mimeType"), keep)}
    if kind == "resource" and isinstance(resource := block.get("resource"), Mapping):
        return read_resource(resource, keep=keep)
    if kind == "resource_link":
        return {
            "type": "resource_link",
            "uri": _short(block.get("uri"), _MAX_URI),
            "name": _short(block.get("name"), 256),
            "media_type": _media_type(block.get("mimeType")),
        }
    return {"type": "unknown", "reported_type": _short(kind, 64)}


def read_resource(resource: Mapping[str, Any], *, keep: Keeps) -> JsonObject:
    """One part of a resource as data: its text, or the name under which its bytes are kept."""
    seen: JsonObject = {"type": "resource", "uri": _short(resource.get("uri"), _MAX_URI)}
    text = resource.get("text")
    if isinstance(text, str):
        return {**seen, "media_type": _media_type(resource.get("mimeType")), "text": text}
    return {**seen, **_kept(resource.get("blob"), resource.get("mimeType"), keep)}


def _kept(encoded: object, media_type: object, keep: Keeps) -> JsonObject:
    """Bytes brought beside the answer; what cannot be kept is said, and the rest of the answer stands."""
    media = _media_type(media_type)
    if not isinstance(encoded, str):
        return {"media_type": media, "left_out": "there are no bytes"}
    if len(encoded) > MAX_ARTIFACT_BYTES * 4 // 3 + 4:
        return {"media_type": media, "left_out": f"more than {MAX_ARTIFACT_BYTES} bytes"}
    try:
        body = base64.b64decode(encoded, validate=True)
    except (binascii.Error, ValueError):
        return {"media_type": media, "left_out": "not base64"}
    try:
        artifact_id = keep(body, media)
    except ValueError as error:
        return {"media_type": media, "bytes": len(body), "left_out": str(error)}
    return {"media_type": media, "bytes": len(body), "artifact_id": str(artifact_id)}


def _media_type(said: object) -> str:
    named = said.split(";")[0].strip().lower() if isinstance(said, str) else ""
    return named if _MEDIA_TYPE.fullmatch(named) else _UNNAMED


def _short(said: object, limit: int) -> str:
    return said[:limit] if isinstance(said, str) else ""
