"""``python -m benchmarks.boundary``: what bringing an answer into a result costs, beside rendering the same value plainly."""

import argparse
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any
from uuid import UUID

import orjson
from pydantic import BaseModel
from rich.console import Console
from rich.table import Table

from agentic.contract.json_types import JsonValue
from agentic.services.tools.boundary import Facts, bounded_result
from agentic.services.tools.context import CallContext
from agentic.services.tools.declarations import internal_tool
from agentic.services.tools.outcomes import model_text

SIZES = {"32 kB": 32_000, "1 MB": 1_000_000}
_FACTS = Facts(span_id=UUID(int=1), secrets=("tok_live_0123456789",))
_LEAST_CALLS = 3


class _Anything(BaseModel):
    model_config = {"extra": "allow"}


@internal_tool("bench.answer", "Answers.", item_kind="bench.row")
async def _answer(ctx: CallContext, args: _Anything) -> Any:
    """Declared for its spec alone."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Figures:
    """What one value took. Counts are exact; times belong to this machine in this hour.

    Attributes:
        value_bytes: of the value, encoded plainly.
        parts: values and keys in it, the containers included.
        shown_bytes: of what a model reads, the envelope included.
        kept_bytes: of what an artifact keeps; 0 when nothing was left out.
        items: of the answer, where it is an array.
        plain_ms: `orjson.dumps` of the value.
        boundary_ms: schema, redaction, bounds and label.
        render_ms: the text a model reads, of the result.
    """

    value: str
    value_bytes: int
    parts: int
    shown_bytes: int
    kept_bytes: int
    items: int | None
    calls: int
    plain_ms: float
    boundary_ms: float
    render_ms: float

    @property
    def of_plain(self) -> float:
        """How many times as long as rendering the value plainly the whole way took."""
        return (self.boundary_ms + self.render_ms) / self.plain_ms


def flat(size: int) -> JsonValue:
    """Rows of short fields, together about ``size`` bytes."""
    row: dict[str, JsonValue] = {
        "name": "Ada Berg",
        "city": "Fjordvik",
        "email": "ada@fjord.example",
        "score": 17,
        "open": True,
    }
    count = max(1, size // len(orjson.dumps({"id": 100_000, **row})))
    return [{"id": 100_000 + number, **row} for number in range(count)]


def nested(size: int) -> JsonValue:
    """Objects within objects and lists, together about ``size`` bytes."""
    leaf: JsonValue = {
        "kind": "note",
        "text": "called back, wants a second offer in spring",
        "tags": ["warm", "spring"],
    }
    tree: JsonValue = {"id": 1, "parts": [leaf, {"id": 2, "parts": [leaf, {"id": 3, "parts": [leaf, leaf]}]}]}
    return {"trees": [tree] * max(1, size // len(orjson.dumps(tree)))}


def text(size: int) -> JsonValue:
    """One long text."""
    return {"page": "Line after line of a page, with an é now and then.\n" * (size // 52)}


VALUES: dict[str, Callable[[int], JsonValue]] = {"flat": flat, "nested": nested, "text": text}


def measure(name: str, value: JsonValue, *, seconds: float) -> Figures:
    """Bring one value into a result again and again for about ``seconds``; the fastest of each part counts."""
    result, artifact = bounded_result(_answer.spec, value, _FACTS)
    shown = model_text("bench.answer", result)
    plain_s: list[float] = []
    boundary_s: list[float] = []
    render_s: list[float] = []
    end = time.perf_counter() + seconds
    while len(plain_s) < _LEAST_CALLS or time.perf_counter() < end:
        plain_s.append(_took(lambda: orjson.dumps(value)))
        boundary_s.append(_took(lambda: bounded_result(_answer.spec, value, _FACTS)))
        render_s.append(_took(lambda: model_text("bench.answer", result)))
    return Figures(
        value=name,
        value_bytes=len(orjson.dumps(value)),
        parts=_parts(value),
        shown_bytes=len(shown.encode()),
        kept_bytes=0 if artifact is None else artifact.size_bytes,
        items=result.meta.count,
        calls=len(plain_s),
        plain_ms=min(plain_s) * 1000,
        boundary_ms=min(boundary_s) * 1000,
        render_ms=min(render_s) * 1000,
    )


def run(*, seconds: float) -> list[Figures]:
    """Every value of every size."""
    return [
        measure(f"{size}, {shape}", make(count), seconds=seconds)
        for size, count in SIZES.items()
        for shape, make in VALUES.items()
    ]


def as_json(figures: Sequence[Figures], *, seconds: float) -> dict[str, Any]:
    """The one value that ``--json`` prints."""
    rows = [
        {
            **{name: round(value, 4) if isinstance(value, float) else value for name, value in asdict(row).items()},
            "of_plain": round(row.of_plain, 2),
        }
        for row in figures
    ]
    return {"seconds": seconds, "rows": rows}


def as_table(figures: Sequence[Figures]) -> Table:
    """The same for people."""
    table = Table(title="An answer, from handler to model")
    table.add_column("value", no_wrap=True)
    for name in ("bytes", "parts", "shown", "kept", "plain ms", "boundary ms", "render ms", "of plain"):
        table.add_column(name, justify="right")
    for row in figures:
        table.add_row(
            row.value,
            str(row.value_bytes),
            str(row.parts),
            str(row.shown_bytes),
            str(row.kept_bytes),
            f"{row.plain_ms:.3f}",
            f"{row.boundary_ms:.2f}",
            f"{row.render_ms:.2f}",
            f"{row.of_plain:.0f} ×",
        )
    return table


def main(arguments: Sequence[str] | None = None) -> None:
    """Measures and prints; see ``README.md`` beside this file."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.boundary", description=__doc__)
    parser.add_argument("--json", action="store_true", help="print one JSON value in place of the table")
    parser.add_argument("--seconds", type=_positive, default=1.0, help="how long each value is measured (default: 1)")
    given = parser.parse_args(arguments)
    figures = run(seconds=given.seconds)
    if given.json:
        print(json.dumps(as_json(figures, seconds=given.seconds), indent=2))
    else:
        Console(width=120).print(as_table(figures))


def _took(act: Callable[[], object]) -> float:
    # computing time of this process: others on the machine do not count
    began = time.process_time()
    act()
    return time.process_time() - began


def _parts(value: JsonValue) -> int:
    if isinstance(value, list):
        return 1 + sum(map(_parts, value))
    if isinstance(value, dict):
        return 1 + len(value) + sum(map(_parts, value.values()))
    return 1


def _positive(text: str) -> float:
    value = float(text)
    if not 0 < value <= 600:
        raise argparse.ArgumentTypeError("give seconds above 0, at most 600")
    return value


if __name__ == "__main__":
    main()
