"""A script is cut where Postgres would cut it, and two scripts are equal when they say the same."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentic.storage.sql_text import SqlTextError, essence, first_words, split_statements, tokens

NOT_SEPARATORS = [
    "select 'a;b'",
    "select 'it''s; fine'",
    r"select E'it\'s; fine'",
    'select 1 as "odd;name"',
    "select 1 -- a; b\n + 1",
    "select 1 /* a; /* nested; */ still; */ + 1",
    "do $$ begin perform 1; end $$",
    "do $body$ begin perform $$;$$; end $body$",
    "create rule r as on insert to t do (select 1; select 2)",
    "create function f() returns int language sql begin atomic select case when true then 1 end; select 2; end",
    "select a$b from t where c = $1",
]


@pytest.mark.parametrize("statement", NOT_SEPARATORS)
def test_a_semicolon_inside_something_separates_nothing(statement: str) -> None:
    assert split_statements(f"select 0;{statement};\nselect 9;") == ["select 0", statement, "select 9"]


def test_a_comment_stays_with_the_statement_it_precedes_and_a_last_one_stands_alone() -> None:
    script = "-- why; really\n\ncreate schema s; -- after\ncreate table s.t (id int);;\n-- the end\n"
    assert split_statements(script) == [
        "-- why; really\n\ncreate schema s",
        "-- after\ncreate table s.t (id int)",
        "-- the end",
    ]


@pytest.mark.parametrize("script", ["", " \n", ";;;"])
def test_a_script_of_nothing_has_no_statement(script: str) -> None:
    assert split_statements(script) == []


@pytest.mark.parametrize(
    ("script", "line"),
    [("select 1;\nselect 'a;", 2), ('select "a', 1), ("\n\n/* a /* b */", 3), ("do $x$ begin end $$", 1)],
)
def test_what_never_ends_is_an_error_that_names_its_line(script: str, line: int) -> None:
    with pytest.raises(SqlTextError, match=f"line {line} never ends"):
        split_statements(script)


@given(st.lists(st.sampled_from([*NOT_SEPARATORS, "  ", "\n", "-- remark\n", "select 1", "create table t (id int)"])))
def test_cutting_loses_nothing_and_is_stable(parts: list[str]) -> None:
    script = ";".join(parts)
    assert "".join(token.text for token in tokens(script)) == script
    once = split_statements(script)
    assert split_statements("\n;\n".join(once)) == once
    assert essence("\n;\n".join(once)) == essence(script)


def test_layout_and_comments_do_not_count_but_text_does() -> None:
    assert essence("select  1; -- one\nselect 2") == essence("/* both */ select 1;select 2;")
    assert essence("select 'a  b'") != essence("select 'a b'")
    assert essence("select 1") != essence("select 2")


def test_the_first_words_pass_over_comments() -> None:
    assert first_words("-- x\n/* y */ Start  TRANSACTION read only") == ("start", "transaction")
    assert first_words("('x')") == ()
