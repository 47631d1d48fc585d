"""The text of an email's body: bounded, tidy, and without what nobody was meant to read."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentic.services.tools.handlers.email.plain_text import MAX_MARKUP_CHARS, text_of


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ("Hi Per\r\n\r\n\r\n\r\nSee you\t soon", "Hi Per\n\nSee you soon"),
        (
            "a < b, write to <ida@nordlys.example> or <a@b.example>",
            "a < b, write to <ida@nordlys.example> or <a@b.example>",
        ),
        ("<p>Hi&nbsp;Per,</p><p>caf&eacute; &amp; more</p>", "Hi Per,\n\ncafé & more"),
        ("<div>one<br>two<br/>three</div>", "one\ntwo\nthree"),
        ("<table><tr><td>a</td><td>b</td></tr></table>", "a b"),
        ('<p>see <a href="https://evil.example/?q=1">our page</a></p>', "see our page"),
        ("<p>a<script>alert('<p>x</p>')</script>b</p>", "ab"),
        ("<style>p { color: red }</style><p>a</p><!-- <p>b</p> -->", "a"),
        ("<p>a</p><svg><text>x</text></svg><p>b</p>", "a\n\nb"),
        ("<p>&lt;script&gt;</p>", "<script>"),
        ("<p>a</p></script></p>b", "a\n\nb"),
        ("", ""),
    ],
)
def test_a_body_reads_as_its_words(body: str, text: str) -> None:
    assert text_of(body, max_bytes=1_000) == (text, False)


@pytest.mark.parametrize("tail", ["<!-- never closed", "<p title='never closed", "<script>never closed"])
def test_what_is_never_closed_takes_nothing_before_it(tail: str) -> None:
    text, _ = text_of(f"<p>Hello</p>{tail}", max_bytes=1_000)
    assert text == "Hello"


def test_a_comment_that_is_never_closed_is_said_to_leave_something_out() -> None:
    assert text_of("<p>Hello</p><!-- and <p>more</p>", max_bytes=1_000) == ("Hello", True)


def test_a_cut_text_ends_with_a_whole_character_and_says_so() -> None:
    assert text_of("ååå", max_bytes=5) == ("åå", True)
    assert text_of("a" * (MAX_MARKUP_CHARS + 1), max_bytes=10) == ("a" * 10, True)


@given(st.text(st.sampled_from("<>/!-pa 'b=\"&;#x\n[scriptdiv"), max_size=300), st.integers(0, 100))
def test_whatever_a_body_holds_its_text_is_bounded(body: str, max_bytes: int) -> None:
    for read in (body, f"<p>{body}"):
        text, _ = text_of(read, max_bytes=max_bytes)
        assert len(text.encode()) <= max_bytes


@pytest.mark.parametrize("piece", ["<!--", "<![CDATA[", "</a ", "<a b='>", "<script>", "<p ", "&#x"])
def test_a_body_that_is_made_to_be_slow_is_read_once_through(piece: str) -> None:
    body = "<p>Hello</p>" + piece * (MAX_MARKUP_CHARS // len(piece))
    text, _ = text_of(body, max_bytes=5)
    assert text == "Hello"
