"""The HOME of a retired server goes whole, and nothing that it only leads to."""

import os
from pathlib import Path

import pytest

from agentic.cli.mcp_homes import WORDS, Left, remove_home
from agentic.services.mcp.config import StdioLaunch


@pytest.fixture
def home(tmp_path: Path) -> Path:
    made = tmp_path / "homes" / "notes"
    (made / "sub").mkdir(parents=True)
    (made / "sub" / "file").touch()
    return made


def test_a_home_goes_with_all_that_is_in_it_and_what_its_links_lead_to_stays(home: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "kept").touch()
    (home / "folder").symlink_to(outside)
    (home / "file").symlink_to(outside / "kept")
    os.mkfifo(home / "pipe")
    launches = {"notes": StdioLaunch(command=("x",), home=str(home)), "clock": StdioLaunch(command=("x",))}
    assert remove_home(home, server_id="notes", launches=launches) is None
    assert (home.exists(), home.parent.is_dir(), (outside / "kept").exists()) == (False, True, True)
    assert remove_home(home, server_id="notes", launches=launches) is None


@pytest.mark.parametrize("below", ["", "sub"])
def test_a_home_in_which_another_server_lives_stays(home: Path, below: str) -> None:
    launches = {"clock": StdioLaunch(command=("x",), home=str(home / below))}
    assert remove_home(home, server_id="notes", launches=launches) is Left.SHARED
    assert (home / "sub" / "file").exists()


def test_a_link_in_the_place_of_a_home_or_of_all_homes_is_left_for_a_person(home: Path, tmp_path: Path) -> None:
    link = home.parent / "clock"
    link.symlink_to(home)
    (tmp_path / "others").symlink_to(home.parent)
    for place in (link, tmp_path / "others" / "notes", home / "sub" / "file"):
        assert remove_home(place, server_id="notes", launches={}) is Left.LINKED
    assert (home / "sub" / "file").exists()


def test_why_a_home_stays_is_said_in_words() -> None:
    assert WORDS.keys() == set(Left)
