"""Which folders may be the one that agentic keeps its things in."""

import os
from pathlib import Path

import pytest

from agentic.local.home import FolderUnusable, Home
from agentic.services.mcp.deployment import launches_from_environment


def test_a_new_an_empty_and_a_known_folder_are_good(tmp_path: Path) -> None:
    Home(tmp_path / "deep" / "new").check()
    Home(tmp_path).check()
    Home(tmp_path).identity()
    (tmp_path / "notes.txt").touch()
    Home(tmp_path).check()


def test_a_folder_whose_first_file_is_being_written_by_another_process_is_ours(tmp_path: Path) -> None:
    (tmp_path / ".postgres-x1y2").mkdir()
    Home(tmp_path).check()


def test_a_folder_of_somebody_else_is_left_untouched(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").touch()
    for use in (Home(tmp_path).check, Home(tmp_path).identity, Home(tmp_path).database().__enter__):
        with pytest.raises(FolderUnusable, match="left untouched"):
            use()
    assert [entry.name for entry in tmp_path.iterdir()] == ["thesis.txt"]


@pytest.mark.parametrize("below", ["", "deeper"])
def test_a_file_in_the_way_is_named(tmp_path: Path, below: str) -> None:
    (tmp_path / "afile").touch()
    with pytest.raises(FolderUnusable, match="afile is a file"):
        Home(tmp_path / "afile" / below).check()


def test_an_impossible_name_is_one_short_sentence(tmp_path: Path) -> None:
    with pytest.raises(FolderUnusable, match="--folder") as refused:
        Home(tmp_path / ("x" * 300)).check()
    assert len(str(refused.value)) < 250


def test_the_folder_has_a_file_of_stdio_servers_that_its_workers_are_told_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AGENTIC_MCP_SERVERS", "")
    Home(tmp_path / "nowhere").name_mcp_servers()
    assert not (tmp_path / "nowhere").exists()
    home = Home(tmp_path)
    home.name_mcp_servers()
    assert os.environ["AGENTIC_MCP_SERVERS"] == str(home.mcp_servers) == str(tmp_path / "mcp_servers.json")
    assert dict(launches_from_environment()) == {}
    Home(tmp_path / "other").name_mcp_servers()
    assert Home(tmp_path / "other").mcp_servers == home.mcp_servers
    home.server_home("notes").mkdir(parents=True)
    Home(tmp_path).check()
