"""Mistakes in the arguments."""

import json

import pytest

from agentic.cli import main


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
