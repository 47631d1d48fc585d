"""Text of strangers on a terminal."""

import pytest

from agentic.cli.safe_text import safe, safe_line


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Kjære Åse, 日本 🙂", "Kjære Åse, 日本 🙂"),
        ("a\x1b[2Jb", r"a\x1b[2Jb"),
        ("to\rover", r"to\rover"),
        ("\x9b31m", r"\x9b31m"),
        ("exe\u202egpj", r"exe\u202egpj"),
        ("one\u2028two", r"one\u2028two"),
        ("\ud800", r"\ud800"),
        ("[red]plain[/red]", "[red]plain[/red]"),
        ("two\nlines", "two\nlines"),
    ],
)
def test_what_could_deceive_the_eye_is_spelled_out(text: str, shown: str) -> None:
    assert safe(text) == shown
    assert "\n" not in safe_line(text)
