"""A server is started later by a process that has nothing of the person's shell: what it needs of it is written down."""

import os
from pathlib import Path

import pytest

from agentic.cli.mcp_launch import NotLaunchable, launch_of, settings
from agentic.services.mcp.environment import DEFAULT_PATH


def program(folder: Path, name: str) -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


def test_a_program_of_the_system_is_found_by_its_name_and_arguments_are_quoted_as_in_a_shell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    launch = launch_of("sh -c 'echo  two'", home=tmp_path / "home", variables={"LEVEL": "info"})
    assert launch.command == ("sh", "-c", "echo  two")
    assert (launch.path, launch.cwd, launch.home) == (DEFAULT_PATH, str(tmp_path), str(tmp_path / "home"))
    assert launch.variables == {"LEVEL": "info"}


def test_a_program_that_only_the_persons_path_has_keeps_its_folder_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool = program(tmp_path / "tools", "npx")
    monkeypatch.setenv("PATH", f"{tool.parent}{os.pathsep}{os.environ['PATH']}")
    launch = launch_of("npx -y notes", home=tmp_path)
    assert launch.command == ("npx", "-y", "notes")
    assert launch.path == f"{tool.parent}{os.pathsep}{DEFAULT_PATH}"


def test_a_program_with_a_folder_becomes_absolute_and_a_link_stays_the_link(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = program(tmp_path / "real", "python")
    (tmp_path / "venv").mkdir()
    (tmp_path / "venv" / "python").symlink_to(real)
    monkeypatch.chdir(tmp_path)
    assert launch_of("./venv/python -m notes", home=tmp_path).command[0] == str(tmp_path / "venv" / "python")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "empty"),
        ("npx 'open", "no closing quotation"),
        ("nothing-of-this-name", "on your PATH"),
        ("/nowhere/tool", "there is no program /nowhere/tool"),
        ("/usr", "there is no program /usr"),
    ],
)
def test_what_could_not_be_started_is_refused_before_it_is_written_down(text: str, why: str, tmp_path: Path) -> None:
    with pytest.raises(NotLaunchable, match=why):
        launch_of(text, home=tmp_path)


def test_settings_are_names_and_values_each_once() -> None:
    assert settings(["LEVEL=a=b", "EMPTY="]) == {"LEVEL": "a=b", "EMPTY": ""}
    for wrong in (["LEVEL"], ["=x"], ["A=1", "A=2"]):
        with pytest.raises(NotLaunchable):
            settings(wrong)
