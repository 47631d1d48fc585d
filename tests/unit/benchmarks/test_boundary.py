"""The benchmark of the boundary measures what it says: whole values, exact counts, one JSON value."""

import json

import pytest

from benchmarks.boundary import SIZES, VALUES, as_json, as_table, main, measure


@pytest.mark.parametrize("size", SIZES.values(), ids=SIZES)
@pytest.mark.parametrize("shape", VALUES)
def test_a_value_is_about_as_large_as_its_name_says(shape: str, size: int) -> None:
    assert 0.9 * size < len(json.dumps(VALUES[shape](size), separators=(",", ":"), ensure_ascii=False)) < 1.1 * size


def test_counts_say_what_was_shown_and_what_was_kept() -> None:
    small = measure("small", VALUES["flat"](2_000), seconds=0.001)
    assert (small.items, small.kept_bytes) == (len(VALUES["flat"](2_000)), 0)  # type: ignore[arg-type]
    assert small.shown_bytes > small.value_bytes
    large = measure("large", VALUES["nested"](200_000), seconds=0.001)
    assert large.shown_bytes < 33_000 < large.kept_bytes <= 131_072
    assert large.parts > 10_000
    found = as_json([small, large], seconds=0.001)
    assert json.loads(json.dumps(found)) == found
    assert [row["value"] for row in found["rows"]] == ["small", "large"]
    assert as_table([small, large]).row_count == 2


def test_figures_of_nothing_are_not_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--seconds", "0"])
    assert "usage:" in capsys.readouterr().err
