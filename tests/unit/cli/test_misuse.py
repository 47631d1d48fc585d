"""Mistakes in the arguments."""

import json

import pytest

from agentic.cli import main
from agentic.local.crash_points import SENTENCES, CrashPoint


@pytest.mark.parametrize("arguments", [["--folder", "", "demo", "--json"], ["demo", "--json", "--shrug"]])
def test_a_demo_that_is_called_wrongly_ends_with_one_json_object_too(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    out, err = capsys.readouterr()
    said = json.loads(out)
    assert said["status"] == "error"
    assert err == f"error: {said['error']}\n"


def test_an_empty_folder_is_refused_with_the_remedy(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--folder", " ", "runs", "list"])
    assert ended.value.code == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert "it is empty; name a folder" in err


def test_a_point_that_does_not_exist_is_refused_with_those_that_do(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["demo", "--crash-at", "nowhere"])
    assert ended.value.code == 2
    said = capsys.readouterr().err
    assert all(point in said for point in CrashPoint)


def test_the_help_of_the_demo_says_every_point_in_words(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["demo", "--help"])
    assert ended.value.code == 0
    lines = capsys.readouterr().out.splitlines()
    for point, sentence in SENTENCES.items():
        assert any(line.split() == [point, *sentence.split()] for line in lines)


@pytest.mark.parametrize("other", [["--crash"], ["--crash-at", "after-park"], ["--no-vendor-key"]])
def test_the_demo_that_sends_no_email_refuses_what_is_about_emails(
    other: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["demo", "--enrich", *other])
    assert ended.value.code == 2
    assert "--enrich sends no email" in capsys.readouterr().err
