"""What a handler's answer goes through before a model, a span or a row sees it.

In this order: plain data, control characters, credentials, item count, size, and a name for each row left out. The schema was
checked before (`output_validation`); the labelled envelope around foreign text is the adapter's, `untrusted` tells it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from agentic.contract.bounds import DROPPED_KEY, Bounded, bound, is_marker
from agentic.contract.encoding import encode
from agentic.contract.json_types import JsonArray, JsonValue
from agentic.contract.plain import clean_text, free_key, plain
from agentic.services.tools.redaction import redact, redact_text

MAX_OUTPUT_BYTES: Final = 32 * 1024
MIN_OUTPUT_BYTES: Final = 2
CAPTURE_FACTOR: Final = 4
MAX_SAID_CHARS: Final = 2_000
_READ_CHARS: Final = 64 * 1024
"""How much is read of what somebody said; cleaning megabytes would hold up everything else in the process."""
_HALF_NAMED_CHARS: Final = 5_000
"""What follows the name of a credential, or stands before the host of an address, is looked for no further than this."""

_LINE_ENDS: Final = re.compile("\r?[\u2028\u2029]")
# Terminal sequences, C0 but tab and line ends, DEL and C1, the overrides of writing direction, and invisible tag characters.
_CONTROLS: Final = re.compile(
    "\x1b\\[[0-?]*[ -/]*[@-~]|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\U000e0000-\U000e007f]"
)


@dataclass(frozen=True, kw_only=True)
class BoundaryLimits:
    """The bounds one tool declares on what it answers.

    Attributes:
        max_results: items kept of an array, in order; `None` keeps all.
        max_output_bytes: 2 to 32,768 bytes of encoded answer.
        item_kind: kind of resource one item is, to name a row that was left out; `None` names none.

    Raises:
        ValueError: a bound outside its range.
    """

    max_results: int | None = None
    max_output_bytes: int = MAX_OUTPUT_BYTES
    item_kind: str | None = None

    def __post_init__(self) -> None:
        """Refuse a bound outside its range."""
        if not MIN_OUTPUT_BYTES <= self.max_output_bytes <= MAX_OUTPUT_BYTES:
            raise ValueError(
                f"max_output_bytes is {self.max_output_bytes}; use {MIN_OUTPUT_BYTES} to {MAX_OUTPUT_BYTES}"
            )
        if self.max_results is not None and self.max_results < 1:
            raise ValueError(f"max_results is {self.max_results}; use at least 1, or None for no bound")

    @property
    def capture_bytes(self) -> int:
        """How much of an answer is captured at all: four times the output limit."""
        return self.max_output_bytes * CAPTURE_FACTOR


@dataclass(frozen=True, kw_only=True)
class BoundedResult:
    """An answer that may be shown and stored.

    Attributes:
        data: the answer; `encode(data)` is within the limit.
        count: items that remain where the answer is an array, markers of left-out rows included; else `None`.
        truncated: whether the item bound or the byte bound changed anything.
        untrusted: whether the text comes from outside and belongs into the labelled envelope.
        dropped: where something was left out, as `Bounded.dropped`.
        captured: what an artifact keeps when `truncated`: the redacted answer before the bounds, itself within
            `capture_bytes`; `None` when nothing was left out.
        complete: whether `captured` is the whole answer; the capture itself stops at its limit.
    """

    data: JsonValue
    count: int | None
    truncated: bool
    untrusted: bool
    dropped: tuple[str, ...] = ()
    captured: bytes | None = None
    complete: bool = True


def apply_boundary(
    value: object,
    *,
    spec_limits: BoundaryLimits,
    secrets: Sequence[str] = (),
    untrusted: bool,
    artifact_id: UUID | None = None,
) -> BoundedResult:
    """Return what a model may read of `value`. Never raises for anything a handler returned.

    Args:
        value: whatever the handler answered.
        spec_limits: the tool's declared bounds.
        secrets: the exact secret values this call used.
        untrusted: whether the tool answers with text from outside.
        artifact_id: under which `captured` will be kept, for the notes in shortened texts; `None` when it will not be.

    Source: B1, B2, B4, J4, ADR 0014.
    """
    return bound_plain(
        plain(value), spec_limits=spec_limits, secrets=secrets, untrusted=untrusted, artifact_id=artifact_id
    )


def bound_plain(
    value: JsonValue,
    *,
    spec_limits: BoundaryLimits,
    secrets: Sequence[str] = (),
    untrusted: bool,
    artifact_id: UUID | None = None,
) -> BoundedResult:
    """`apply_boundary` for data that `plain` returned already."""
    whole = redact(strip_controls(value), secrets)
    kept = whole
    paths: tuple[str, ...] = ()
    if isinstance(whole, list) and spec_limits.max_results is not None and len(whole) > spec_limits.max_results:
        kept = whole[: spec_limits.max_results]
        paths = (f"/{spec_limits.max_results}-{len(whole) - 1}",)
    fitted = _bounded_and_named(kept, spec_limits, None if artifact_id is None else str(artifact_id))
    truncated = bool(paths) or fitted.truncated
    captured = bound(whole, spec_limits.capture_bytes) if truncated else None
    return BoundedResult(
        data=fitted.value,
        count=len(fitted.value) if isinstance(fitted.value, list) else None,
        truncated=truncated,
        untrusted=untrusted,
        dropped=fitted.dropped + paths,
        captured=encode(captured.value) if captured is not None else None,
        complete=captured is None or not captured.truncated,
    )


def strip_controls(value: JsonValue) -> JsonValue:
    """Return `value` without control characters in its strings and keys; tabs and line ends stay.

    Unicode's own line and paragraph ends become line feeds, which JSON escapes: text that is shown on one line stays on it.
    Removed are terminal sequences, the other C0 and C1 characters, overrides of writing direction and invisible tags: what
    makes text look other than it reads. Keys that become equal keep both values.

    Source: B1, ADR 0014.
    """
    if isinstance(value, str):
        return _without_controls(value)
    if isinstance(value, list):
        return [strip_controls(item) for item in value]
    if isinstance(value, dict):
        cleaned: dict[str, JsonValue] = {}
        for key, item in value.items():
            name = _without_controls(key)
            cleaned[name if name not in cleaned else free_key(name, cleaned)] = strip_controls(item)
        return cleaned
    return value


def said_text(words: str, secrets: Sequence[str]) -> str:
    """Return what somebody said about a call as it may be stored and shown: no secrets, no controls, at most 2,000 characters.

    Source: B2, B3.
    """
    if len(words) <= _READ_CHARS:
        return redact_text(_without_controls(clean_text(words)), secrets)[:MAX_SAID_CHARS]
    said = redact_text(_without_controls(clean_text(words[:_READ_CHARS])), secrets)
    # where the reading stopped, half a secret may stand; twelve characters are the longest form of one
    half = max((12 * len(secret) for secret in secrets), default=0) + _HALF_NAMED_CHARS
    return said[: max(0, len(said) - half)][:MAX_SAID_CHARS]


def _without_controls(text: str) -> str:
    # nearly every text; nothing that is removed is printable
    if text.isprintable() or text.replace("\n", "").replace("\r", "").replace("\t", "").isprintable():
        return text
    text = _CONTROLS.sub("", text)
    return text if text.isascii() else _LINE_ENDS.sub("\n", text)


def _bounded_and_named(value: JsonValue, limits: BoundaryLimits, kept_as: str | None) -> Bounded:
    first = bound(value, limits.max_output_bytes, kept_as=kept_as)
    if not first.truncated or limits.item_kind is None:
        return first
    named = _name_rows(value, first.value, limits.item_kind)
    # A name adds bytes to each marker, so the size is checked once more by the same rule.
    second = bound(named, limits.max_output_bytes, kept_as=kept_as)
    return Bounded(value=second.value, truncated=True, dropped=(*first.dropped, *second.dropped))


def _name_rows(before: JsonValue, after: JsonValue, kind: str) -> JsonValue:
    """Put kind and id of the row into each marker that stands for one. Rows are the items of the answer, or of its only array."""
    if isinstance(before, list) and isinstance(after, list):
        return _name_items(before, after, kind)
    if not isinstance(before, dict) or not isinstance(after, dict):
        return after
    arrays = [key for key, item in before.items() if isinstance(item, list)]
    named: dict[str, JsonValue] = {}
    for key, item in after.items():
        original = before[key]
        if isinstance(original, list) and isinstance(item, list):
            named[key] = _name_items(original, item, kind) if len(arrays) == 1 else item
        else:
            named[key] = _named(original, item, kind)
    return named


def _name_items(before: JsonArray, after: JsonArray, kind: str) -> JsonArray:
    return [_named(original, item, kind) for original, item in zip(before, after, strict=False)]


def _named(original: JsonValue, item: JsonValue, kind: str) -> JsonValue:
    # An answer may hold what looks like our marker; only where bound() put one is there a row to name.
    if item is original or not is_marker(item) or not isinstance(original, dict):
        return item
    row, facts = original.get("id"), item[DROPPED_KEY]
    if isinstance(row, bool) or not isinstance(row, str | int) or not isinstance(facts, dict):
        return item
    return {DROPPED_KEY: {**facts, "ref": {"kind": kind, "id": row}}}
