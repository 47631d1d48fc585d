"""What cannot work is said in one sentence before anything is started, and nothing is left behind."""

import asyncio
import json
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.timeout(400)


@pytest.fixture
def nobody_listens() -> str:
    """The address of a port that was free a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{probe.getsockname()[1]}"


async def test_each_mistake_is_one_sentence_and_leaves_no_folder(
    agentic: Callable[..., Any], tmp_path: Path, nobody_listens: str
) -> None:
    strange = tmp_path / "strange.csv"
    strange.write_text("email,shoe size\nper@fjord.example,43\n")
    unreachable = tmp_path / "unreachable.csv"
    unreachable.write_text("full_name,company,email\nPer Hansen,Fjord Analytics AS,at reception\n")
    cases: list[tuple[tuple[str, ...], dict[str, str], int, str]] = [
        (("--json",), {}, 2, "add --yes"),
        (("--yes", "--csv", str(strange)), {}, 1, "shoe size"),
        (("--yes", "--csv", str(unreachable)), {}, 1, "no contact has a usable email"),
        (("--yes",), {"AGENTIC_MODEL": "openai:gpt-5-mini"}, 1, "OPENAI_API_KEY"),
        (("--yes", "--json"), {"INNGEST_DEV": f"http://{nobody_listens}"}, 1, "unset INNGEST_DEV"),
        (("--yes",), {"DATABASE_URL": f"postgresql://user:hush@{nobody_listens}/x"}, 1, "cannot be reached"),
    ]
    homes = [agentic(**variables) for _, variables, _, _ in cases]
    ends = await asyncio.gather(*(home.run("demo", *case[0]) for home, case in zip(homes, cases, strict=True)))
    for home, end, (arguments, _, status, words) in zip(homes, ends, cases, strict=True):
        assert end.status == status, end.stderr
        said = [json.loads(line) for line in end.stdout.splitlines()]
        told = [line for line in end.stderr.splitlines() if line.startswith("error: ")]
        assert len(told) == 1, end.stderr
        assert words in told[0]
        lines = [{"status": "error", "error": told[0].removeprefix("error: ")}] if "--json" in arguments else []
        assert said == lines
        assert "Traceback" not in end.stderr
        assert "hush" not in end.stderr
        assert not home.folder.exists()


async def test_a_folder_with_somebody_elses_files_is_left_alone(agentic: Callable[..., Any]) -> None:
    here = agentic()
    foreign = here.folder / "postgres" / "notes.txt"
    foreign.parent.mkdir(parents=True)
    foreign.write_text("mine")
    end = await here.run("demo", "--yes")
    assert end.status == 1
    assert "it was left untouched" in end.stderr
    assert [path.name for path in here.folder.rglob("*") if path.is_file()] == ["notes.txt"]
