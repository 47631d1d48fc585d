"""How hints name the program."""

from pathlib import Path

import pytest

from agentic.local.program import command


@pytest.fixture
def program(tmp_path: Path) -> Path:
    program = tmp_path / "bin" / "agentic"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    return program


def test_a_program_off_the_path_is_named_as_it_was_called(
    program: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setattr("sys.argv", ["bin/agentic", "demo"])
    assert command() == "bin/agentic"


def test_a_program_that_a_shell_finds_is_named_alone(program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(program.parent))
    monkeypatch.setattr("sys.argv", [str(program), "demo"])
    assert command() == "agentic"


def test_another_program_of_the_name_on_the_path_does_not_count(
    program: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(program.parent))
    monkeypatch.setattr("sys.argv", [str(tmp_path / "agentic"), "demo"])
    assert command() == str(tmp_path / "agentic")


def test_a_folder_that_is_not_the_usual_one_is_named_so_that_a_shell_takes_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["-c"])
    assert command(Path(".agentic")) == "agentic"
    assert command(Path("my things")) == "agentic --folder 'my things'"
