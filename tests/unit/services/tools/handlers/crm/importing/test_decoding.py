import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from agentic.services.tools.handlers.crm.importing.decoding import decode, repair
from agentic.services.tools.handlers.crm.importing.problems import CsvProblem


@pytest.mark.parametrize(
    ("raw", "text", "encoding"),
    [
        ("Łukasz, Søren".encode(), "Łukasz, Søren", "utf-8"),
        ("Łukasz".encode("utf-8-sig"), "Łukasz", "utf-8"),
        ("Müller\nSøren €".encode("cp1252"), "Müller\nSøren €", "cp1252"),
        ("Łukasz\n".encode("utf-8-sig") + "Müller\n".encode("cp1252"), "Łukasz\nMüller\n", "mixed"),
    ],
)
def test_each_line_is_read_in_the_encoding_it_was_written_in(raw: bytes, text: str, encoding: str) -> None:
    decoded = decode(raw, "c.csv")
    assert (decoded.text, decoded.encoding) == (text, encoding)


@pytest.mark.parametrize(
    ("raw", "says"),
    [
        ("name".encode("utf-16"), "UTF-16"),
        (b"PK\x03\x04\x00\x00", "binary"),
        (b"name\nM\x81ller\n", "line 2"),
    ],
)
def test_bytes_that_are_no_text_are_refused_with_the_remedy(raw: bytes, says: str) -> None:
    with pytest.raises(CsvProblem, match=says):
        decode(raw, "c.csv")


@pytest.mark.parametrize(
    ("damaged", "mended"),
    [
        ("MÃ¼ller", "Müller"),
        ("SÃ¸ren", "Søren"),
        ("Å\x81ukasz", "Łukasz"),
        ("MÃƒÂ¼ller", "Müller"),
        ("5 â‚¬", "5 €"),
        ("â€œquotedâ€\x9d â€“ â„¢", "“quoted” – ™"),
        ("GroÃŸ", "Groß"),
        ("BJÃ–RN MÃœLLER", "BJÖRN MÜLLER"),
        ("È™tefan", "ștefan"),
    ],
)
def test_utf8_once_read_as_windows_1252_is_undone(damaged: str, mended: str) -> None:
    assert repair(damaged) == mended


@pytest.mark.parametrize(
    "text",
    [
        "Müller",
        "SÃO PAULO",
        "Ã",
        "Łukasz MÃ¼ller",
        "MÃ¼ller ü",
        "plain",
        "",
        "Ângela",
        "Søren",
        "KNÍŽKA",
        "ÄŠ",
        "AMANHÃ…",
        "CAFÉ…",
        "Groß–Gerau",
    ],
)
def test_a_text_that_need_not_be_damaged_is_left_alone(text: str) -> None:
    assert repair(text) == text


@given(st.text(alphabet="abcüøłŁßéñÅÄŠž€ -'", min_size=1))
def test_whatever_was_damaged_comes_back_as_it_was(text: str) -> None:
    assume(repair(text) == text)
    damaged = "".join(_misread(byte) for byte in text.encode())
    assert repair(damaged) == text


def _misread(byte: int) -> str:
    try:
        return bytes([byte]).decode("cp1252")
    except UnicodeDecodeError:
        return chr(byte)
