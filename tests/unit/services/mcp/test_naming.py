"""A remote tool's name here: the same in every process, fit for every provider, never another's."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentic.services.mcp.naming import carriable, cut, registry_name, visible
from agentic.services.tools.models import MAX_MODEL_NAME_LENGTH, NAME_PATTERN, model_tool_name


@pytest.mark.parametrize(
    ("remote", "name"),
    [
        ("search", "mcp.notes.search"),
        ("API-get-user", "mcp.notes.api_get_user"),
        ("Get  Item!", "mcp.notes.get_item"),
        ("__x__", "mcp.notes.x"),
        ("2fa", "mcp.notes.t_2fa"),
        ("日本", "mcp.notes.t_"),
        ("a.b", "mcp.notes.a_b"),
    ],
)
def test_a_name_is_brought_to_the_grammar(remote: str, name: str) -> None:
    assert registry_name("notes", remote) == name


@pytest.mark.guarantee("N1")
@given(server=st.from_regex(r"[a-z][a-z0-9_]{0,23}", fullmatch=True), remote=st.text(min_size=1, max_size=128))
def test_every_name_fits_and_follows_from_server_and_remote_name_alone(server: str, remote: str) -> None:
    name = registry_name(server, remote)
    assert name == registry_name(server, remote)
    assert NAME_PATTERN.fullmatch(name) and len(model_tool_name(name)) <= MAX_MODEL_NAME_LENGTH


def test_long_names_that_begin_alike_stay_apart() -> None:
    assert registry_name("notes", "x" * 100 + "a") != registry_name("notes", "x" * 100 + "b")


@pytest.mark.parametrize("remote", ["", "a\nb", "a\x1b[0m", "x" * 129, None, 7, "\ud800"])
def test_a_name_that_cannot_be_shown_is_not_carried(remote: object) -> None:
    assert not carriable(remote)


@given(text=st.text(max_size=200), room=st.integers(min_value=8, max_value=60))
def test_what_is_cut_fits_says_so_and_begins_as_what_can_be_seen_does(text: str, room: int) -> None:
    found = cut(text, room)
    assert len(found.encode()) <= room
    whole = visible(text).strip()
    assert found == whole or (whole.startswith(found.removesuffix(" […]")) and (not found or found.endswith(" […]")))


def test_a_megabyte_of_what_nobody_sees_is_nothing() -> None:
    assert cut("\U000e0041" * 1_000_000 + "words", 1_024) == ""
