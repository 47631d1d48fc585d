"""The README's example runs as it stands."""

import os
import re
import subprocess
import sys
from pathlib import Path

README = Path(__file__).parents[2] / "README.md"


def _example() -> str:
    found = re.search(r"<!-- example -->\n```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    assert found is not None, "the README has no marked example"
    return found[1]


def test_the_example_has_about_thirty_lines() -> None:
    lines = [line for line in _example().splitlines() if line.strip()]
    assert len(lines) <= 30


def test_the_example_declares_a_tool_and_runs_an_agent_with_it(tmp_path: Path) -> None:
    script = tmp_path / "example.py"
    script.write_text(_example(), encoding="utf-8")
    ran = subprocess.run(
        [sys.executable, str(script)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        cwd=tmp_path,
        env=dict(os.environ),
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.splitlines() == ["Saved.", 'notes.save ok {"number":8}']
