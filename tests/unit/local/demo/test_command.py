"""How a demo that cannot begin ends."""

import json
from pathlib import Path

import pytest

from agentic.local.demo.command import CANNOT_ASK, FAILED, demo
from agentic.local.demo.options import DemoOptions


def test_a_demo_that_fails_before_its_run_ends_with_one_json_object(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = DemoOptions(yes=True, json=True, csv=tmp_path / "missing.csv", folder=tmp_path / "home")
    assert demo(options) == FAILED
    said = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert said["status"] == "error"
    assert "missing.csv" in said["error"]


def test_a_demo_that_has_nobody_to_ask_says_so_in_json_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with Path("/dev/null").open() as nobody:
        monkeypatch.setattr("sys.stdin", nobody)
        assert demo(DemoOptions(json=True, folder=tmp_path / "home")) == CANNOT_ASK
    assert "--yes" in json.loads(capsys.readouterr().out)["error"]
