"""One written form: whatever a text went through, the same thing has the same key, and different things keep theirs."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agentic.services.tools.handlers.crm.canonical import domain_of, email_of, fold, lines, one_line

TEXT = st.text(max_size=40)
LABEL = st.from_regex(r"[a-z0-9]([a-z0-9-]{0,10}[a-z0-9])?", fullmatch=True).filter(lambda label: label[2:4] != "--")
HOST = st.builds(
    lambda labels, top: ".".join((*labels, top)),
    st.lists(LABEL, min_size=1, max_size=3),
    st.sampled_from(["example", "test"]),
)


@given(TEXT)
@example("™")
@example("a\x00b\u200bc")
@example("\x1fa\u0345\u0301")
def test_a_canonical_text_is_its_own_canonical_form(text: str) -> None:
    for form in (fold, one_line, lines):
        assert form(form(text)) == form(text)
    for key in (email_of, domain_of):
        found = key(text)
        assert found is None or key(found) == found


@given(TEXT)
def test_folding_does_not_care_about_case_blanks_or_how_letters_are_composed(text: str) -> None:
    assert fold(f"  {one_line(text)}\t") == fold(one_line(text))
    assert fold(text.lower()) == fold(text.lower().casefold())


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Łukasz  MÜLLER", "lukasz muller"),
        ("Weiß", "WEISS"),
        ("Søren Kjærgaard", "soren kjaergaard"),
        ("Fjord\u200b AS", "fjord as"),
        ("Ａｃｍｅ", "acme"),
        ("İdil", "idil"),
    ],
)
def test_spellings_of_one_name_are_one(one: str, other: str) -> None:
    assert fold(one) == fold(other)


@pytest.mark.parametrize(("one", "other"), [("ガ", "カ"), ("กี", "กิ"), ("Per", "Pia"), ("Fjord AS", "Fjord A/S")])
def test_different_names_stay_apart(one: str, other: str) -> None:
    assert fold(one) != fold(other)


@given(
    HOST,
    st.sampled_from(["", "http://", "https://", "HTTPS://", "//", "https://user:word@"]),
    st.sampled_from(["", "www.", "WWW."]),
    st.sampled_from(["", ".", ":8443", "/en/about", "?q=1", "#top"]),
)
def test_a_domain_is_the_same_however_a_web_site_is_written(host: str, scheme: str, www: str, end: str) -> None:
    bare = domain_of(host)
    assert bare is not None
    assert domain_of(f" {scheme}{www}{host.upper()}{end} ") == bare


@pytest.mark.parametrize(
    ("text", "domain"),
    [
        ("bücher.example", "xn--bcher-kva.example"),
        ("xn--bcher-kva.example", "xn--bcher-kva.example"),
        ("straße.example", "xn--strae-oqa.example"),
        ("fjord。example", "fjord.example"),
        ("www.com", "www.com"),
        ("shop.fjord.example", "shop.fjord.example"),
    ],
)
def test_a_domain_is_kept_in_ascii_and_loses_nothing_but_www(text: str, domain: str) -> None:
    assert domain_of(text) == domain


@pytest.mark.parametrize(
    "text",
    [
        "",
        "n/a",
        "see notes",
        "per@fjord.example",
        "localhost",
        "10.0.0.1",
        "http://",
        "a_b.example",
        "-a.example",
        "javascript:alert(1)",
        "a" * 64 + ".example",
    ],
)
def test_what_is_no_domain_has_no_key(text: str) -> None:
    assert domain_of(text) is None


@given(st.from_regex(r"[a-z0-9]([a-z0-9.+_-]{0,10}[a-z0-9])?", fullmatch=True), HOST)
def test_an_address_is_the_same_in_any_case_and_dress(local: str, host: str) -> None:
    bare = email_of(f"{local}@{host}")
    assert bare is not None
    for dress in (f" {local}@{host} ", f"MAILTO:{local.upper()}@{host}", f"<{local}@{host.upper()}>"):
        assert email_of(dress) == bare


@pytest.mark.parametrize(
    "text",
    ["", "n/a", "per", "per@localhost", "per hansen@x.example", "Per <per@x.example>", "a@b@c.example", "@x.example"],
)
def test_what_is_no_address_has_no_key(text: str) -> None:
    assert email_of(text) is None


def test_an_address_keeps_what_tells_people_apart() -> None:
    assert email_of("per+news@www.fjord.example") == "per+news@www.fjord.example"
    assert email_of("Jörg@Bücher.example") == "jörg@xn--bcher-kva.example"


def test_notes_keep_their_lines_and_lose_what_no_one_can_see() -> None:
    assert lines("  one\r\ntwo\x00\x1b[31m\rthree\n\n") == "one\ntwo[31m\nthree"
