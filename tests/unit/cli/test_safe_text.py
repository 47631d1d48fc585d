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


@pytest.mark.guarantee("A1")
@pytest.mark.parametrize(
    "hidden",
    ["\u200b", "\u200d", "\u00ad", "\ufeff", "\u2060", "\ufe0f", "\ufe01", "\u3164", "\U000e0041", "\U000e0101"],
)
def test_an_address_that_only_looks_like_another_is_seen_to_be_none(hidden: str) -> None:
    text = f"anna@exam{hidden}ple.test"
    assert safe(text) == text.replace(hidden, hidden.encode("unicode_escape").decode())


@pytest.mark.parametrize(
    "text",
    [
        "\u2764\ufe0f",
        "\U0001f469\u200d\U0001f52c",
        "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645",
        "f\u00fcr",
        "\u845b\U000e0100\u57ce",
    ],
)
def test_what_scripts_and_emoji_are_made_of_stays(text: str) -> None:
    assert safe(text) == text
