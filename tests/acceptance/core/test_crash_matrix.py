"""The crash matrix: a worker is killed at every statement boundary of a call, and the next one goes on (J3, J8).

Nothing is lost, done twice or stuck; a call ends uncertain exactly where its effect may have left and nobody can ask. The whole of it is
``docs/crash-matrix.md``; ``UPDATE_CRASH_MATRIX=1`` writes it anew.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from crash_matrix import CLASSES, POINTS, WATERMARKS, Cell, cells

PAGE = Path(__file__).parents[3] / "docs" / "crash-matrix.md"


def expected(cell: Cell) -> tuple[str, int]:
    """The claim's state and the number of effects, as the table of how a call ends has it."""
    claimed = POINTS.index(cell.point) >= POINTS.index("after claim")
    marked = claimed and (
        cell.watermark == "at_claim" or POINTS.index(cell.point) >= POINTS.index("after mark_effect_sent")
    )
    accepted = POINTS.index(cell.point) >= POINTS.index("accepted by the provider")
    stored = POINTS.index(cell.point) >= POINTS.index("after end_complete")
    if cell.cls == "non_idempotent" and marked and not stored:
        return "uncertain", int(accepted)
    return "completed", 1


def page(done: list[Cell]) -> str:
    """The matrix for people."""
    unknown = sum(cell.claim == "uncertain" for cell in done)
    lines = [
        "# Crash matrix",
        "",
        "A worker is killed with SIGKILL at each boundary of one call; the next worker goes on from the rows. The model words its",
        "arguments anew whenever it is asked again, and the provider counts what really happened. Written by the acceptance tests.",
        "",
        f"{len(done)} deaths: 0 effects lost, 0 done twice, 0 runs stuck, {unknown} for an operator.",
        "",
        "| the worker died | " + " | ".join(f"{cls}, {mark}" for cls in CLASSES for mark in WATERMARKS) + " |",
        "|---|" + "---|" * (len(CLASSES) * len(WATERMARKS)),
    ]
    by = {(cell.cls, cell.watermark, cell.point): cell for cell in done}
    for point in POINTS:
        row = [by.get((cls, mark, point)) for cls in CLASSES for mark in WATERMARKS]
        lines.append(f"| {point} | " + " | ".join("–" if cell is None else _words(cell) for cell in row) + " |")
    return "\n".join(
        [*lines, "", "`–`: a tool marked with its claim has no statement of its own for the watermark.", ""]
    )


def _words(cell: Cell) -> str:
    effects = {0: "no effect", 1: "one effect"}.get(cell.effects, f"{cell.effects} effects")
    return f"{cell.claim}, {effects}"


@pytest.mark.timeout(600)
@pytest.mark.guarantee("J1", "J3", "J5", "J7", "J8")
def test_a_worker_killed_at_any_statement_of_a_call_loses_nothing_and_repeats_nothing(
    database: str, tmp_path: Path
) -> None:
    environment = {**os.environ, "CRASH_MATRIX_URL": database, "PYTHONPATH": os.pathsep.join(sys.path)}
    ran = subprocess.run(
        [sys.executable, "-m", "crash_matrix", str(tmp_path)],
        env=environment, capture_output=True, text=True, check=False, timeout=590,
    )  # fmt: skip
    found = [Cell(**json.loads(path.read_text())) for path in tmp_path.glob("*.cell")]
    order = [(cell.cls, cell.watermark, cell.point) for cell in cells()]
    done = sorted(found, key=lambda cell: order.index((cell.cls, cell.watermark, cell.point)))
    assert len(done) == len(order), ran.stderr[-4000:]
    wrong = [
        cell
        for cell in done
        if not cell.killed or cell.run != "succeeded" or (cell.claim, cell.effects) != expected(cell)
    ]
    assert not wrong, "\n".join(map(repr, wrong))
    if os.environ.get("UPDATE_CRASH_MATRIX"):
        PAGE.write_text(page(done))
    assert PAGE.read_text() == page(done), "the page is stale: run this test with UPDATE_CRASH_MATRIX=1"
