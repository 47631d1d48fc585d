"""Files of queries are read once, and one that breaks the form is refused with its fault."""

from pathlib import Path

import pytest

from agentic.storage.queries import QueryFileError, load_queries


def write(folder: Path, text: str) -> Path:
    (folder / "things.sql").write_text(text, encoding="utf-8")
    return folder


def test_each_query_is_found_by_its_name_without_its_purpose_line(tmp_path: Path) -> None:
    folder = write(
        tmp_path,
        "-- Everything about things.\n\n"
        "-- name: take_one\n-- Takes 10 % of the things,\n-- at least one.\nselect 1\nfrom things;\n\n"
        "-- name: drop_all\n-- Forgets everything.\n\ndelete from things -- really\nwhere true;\n",
    )
    assert dict(load_queries("things", folder=folder)) == {
        "take_one": "select 1\nfrom things",
        "drop_all": "delete from things -- really\nwhere true",
    }


def test_a_statement_includes_what_several_share_indented_as_the_line_that_names_it(tmp_path: Path) -> None:
    (tmp_path / "fragments.sql").write_text("-- name: later\n-- Puts it off.\na = 1,\nb = 2;\n", encoding="utf-8")
    folder = write(
        tmp_path,
        "-- name: put_off\n-- Why.\nupdate things set\n    -- include: later\nwhere true\n\n"
        "-- name: what\n-- Why.\n-- include: later\n",
    )
    assert dict(load_queries("things", folder=folder)) == {
        "put_off": "update things set\n    a = 1,\n    b = 2\nwhere true",
        "what": "a = 1,\nb = 2",
    }


def test_what_a_statement_includes_has_to_be_there(tmp_path: Path) -> None:
    folder = write(tmp_path, "-- name: a\n-- Why.\nselect\n-- include: one\n")
    with pytest.raises(QueryFileError, match=r"there is no file of queries .*fragments\.sql"):
        load_queries("things", folder=folder)
    (tmp_path / "fragments.sql").write_text("-- name: two\n-- Why.\n2", encoding="utf-8")
    with pytest.raises(QueryFileError, match="a includes 'one', which is none of fragments"):
        load_queries("things", folder=folder)


def test_a_fragment_includes_none(tmp_path: Path) -> None:
    (tmp_path / "fragments.sql").write_text("-- name: two\n-- Why.\n-- include: two\n", encoding="utf-8")
    with pytest.raises(QueryFileError, match="a fragment includes none"):
        load_queries("fragments", folder=tmp_path)


def test_a_group_is_read_once(tmp_path: Path) -> None:
    folder = write(tmp_path, "-- name: a\n-- Why.\nselect 1")
    first = load_queries("things", folder=folder)
    write(tmp_path, "nonsense")
    assert load_queries("things", folder=folder) is first


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", "has to begin with"),
        ("select 1;\n-- name: a\n-- Why.\nselect 1", "has to begin with"),
        ("-- name: a\n-- Why.\nselect 1\n-- name: a\n-- Why.\nselect 2", "a is there twice"),
        ("-- name:\n-- Why.\nselect 1", "the name '' has to be"),
        ("-- name: Take One\n-- Why.\nselect 1", "the name 'Take One' has to be"),
        ("-- name: a\nselect 1", "a needs a comment below its name"),
        ("-- name: a\n--\nselect 1", "a needs a comment below its name"),
        ("-- name: a\n-- Why.\n", "a has no statement"),
        ("-- name: a\n-- Why.\n;\n-- name: b\n-- Why.\nselect 1", "a has no statement"),
    ],
)
def test_a_file_out_of_form_is_refused_with_its_fault(tmp_path: Path, text: str, fault: str) -> None:
    with pytest.raises(QueryFileError, match=fault):
        load_queries("things", folder=write(tmp_path, text))


def test_a_missing_group_names_the_file(tmp_path: Path) -> None:
    with pytest.raises(QueryFileError, match=r"absent\.sql"):
        load_queries("absent", folder=tmp_path)
