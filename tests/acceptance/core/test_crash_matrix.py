"""The crash matrix: a worker is killed at every point of a run, and the next one goes on (J3, J8, W1).

Nothing is lost, done twice, asked twice or stuck; a call ends uncertain exactly where its effect may have left and nobody can ask. The
whole of it is ``docs/crash-matrix.md``; ``UPDATE_CRASH_MATRIX=1`` writes it anew.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from agentic.local.crash_points import SENTENCES, CrashPoint, Left, left
from crash_matrix import CLASSES, WATERMARKS, Cell, cells

PAGE = Path(__file__).parents[3] / "docs" / "crash-matrix.md"


def expected(cell: Cell) -> tuple[str, int]:
    """The claim's state and the number of effects, as the table of how a call ends has it."""
    what = left(CrashPoint(cell.point), marked_with_claim=cell.watermark == "at_claim")
    if cell.cls == "non_idempotent" and what in (Left.MARKED, Left.DONE):
        return "uncertain", int(what is Left.DONE)
    return "completed", 1


def page(done: list[Cell]) -> str:
    """The matrix for people."""
    unknown = sum(cell.claim == "uncertain" for cell in done)
    lines = [
        "# Crash matrix",
        "",
        "A run reads, asks a person, acts and ends. Its process is killed with SIGKILL at each point; another goes on from the rows,",
        "told by a sweep alone. The model words its calls anew whenever it is asked again, and the provider counts what really",
        "happened. `agentic demo --crash-at POINT` shows any of them. Written by the acceptance tests.",
        "",
        f"{len(done)} deaths: 0 effects lost, 0 done twice, 0 runs stuck, {unknown} for an operator.",
        "",
        "| point | when the process died | "
        + " | ".join(f"{cls}, {mark}" for cls in CLASSES for mark in WATERMARKS)
        + " |",
        "|---|---|" + "---|" * (len(CLASSES) * len(WATERMARKS)),
    ]
    by = {(cell.cls, cell.watermark, cell.point): cell for cell in done}
    for point in CrashPoint:
        row = [by.get((cls, mark, point)) for cls in CLASSES for mark in WATERMARKS]
        words = " | ".join("–" if cell is None else _words(cell) for cell in row)
        lines.append(f"| `{point}` | {SENTENCES[point]} | {words} |")
    return "\n".join([*lines, "", "`–`: the point is the same for both watermarks, or only one of them has it.", ""])


def _words(cell: Cell) -> str:
    effects = {0: "no effect", 1: "one effect"}.get(cell.effects, f"{cell.effects} effects")
    return f"{cell.claim}, {effects}"


@pytest.mark.timeout(600)
@pytest.mark.guarantee("J1", "J3", "J5", "J7", "J8", "W1", "A2")
def test_a_process_killed_at_any_point_of_a_run_loses_nothing_and_repeats_nothing(
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
        if not (cell.killed and cell.whole and cell.asked == 1 and cell.run == "succeeded")
        or (cell.claim, cell.effects) != expected(cell)
    ]
    assert not wrong, "\n".join(map(repr, wrong))
    if os.environ.get("UPDATE_CRASH_MATRIX"):
        PAGE.write_text(page(done))
    assert PAGE.read_text() == page(done), "the page is stale: run this test with UPDATE_CRASH_MATRIX=1"
