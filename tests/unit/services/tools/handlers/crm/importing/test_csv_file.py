from pathlib import Path

import pytest

from agentic.local.demo.casting import SAMPLE
from agentic.services.tools.handlers.crm.importing import csv_file
from agentic.services.tools.handlers.crm.importing.contacts import Contact
from agentic.services.tools.handlers.crm.importing.csv_file import MAX_BYTES, ImportReport, load_contacts
from agentic.services.tools.handlers.crm.importing.problems import CsvProblem


def load(folder: Path, content: str | bytes) -> ImportReport:
    path = folder / "contacts.csv"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return load_contacts(path)


def test_the_shipped_export_is_read_and_counted() -> None:
    report = load_contacts(SAMPLE)
    names = {contact.name for contact in report.contacts}
    assert {
        "Anna Müller",
        "Søren Kjærgaard",
        "Łukasz Wiśniewski",
        "Günter Weiß",
        "Jörg Müller",
        "Łucja Kowalska",
    } <= names
    assert not [name for name in names if "Ã" in name or "Å" in name]
    assert (report.rows, len(report.contacts), report.merged) == (58, 51, 7)
    assert (report.missing_email, report.repaired, report.encoding) == (3, 12, "mixed")
    assert report.rows == len(report.contacts) + report.merged + len(report.bad)


@pytest.mark.parametrize(("delimiter", "word"), [(",", "comma"), (";", "semicolon"), ("\t", "tab")])
@pytest.mark.parametrize("quote", ["", '"'])
def test_comma_semicolon_and_tab_are_told_apart(tmp_path: Path, delimiter: str, word: str, quote: str) -> None:
    heading = delimiter.join(f"{quote}{name}{quote}" for name in ("Name", "E-Mail", "Company"))
    row = delimiter.join(("Per Hansen", "per@fjord.example", '"Fjord, ""Analytics""; AS"'))
    report = load(tmp_path, f"{heading}\n{row}\n")
    assert report.delimiter == word
    assert report.contacts == (Contact(name="Per Hansen", email="per@fjord.example", company='Fjord, "Analytics"; AS'),)


def test_headings_match_in_any_case_order_and_spelling(tmp_path: Path) -> None:
    report = load(
        tmp_path, "company_name,LAST NAME,e-mail,first-name,Country/Region\nFjord,Hansen,p@fjord.example,Per,Norway\n"
    )
    assert report.contacts == (Contact(name="Per Hansen", email="p@fjord.example", company="Fjord", country="Norway"),)


def test_cells_are_trimmed_and_a_quoted_line_break_stays_in_its_note(tmp_path: Path) -> None:
    report = load(
        tmp_path,
        'name,email,company,website,notes\r\n  Per \u00a0 Hansen , Per@FJORD.example ,,https://www.Fjord.example/en,"one\r\ntwo"\r\n',
    )
    assert report.contacts == (
        Contact(name="Per Hansen", email="per@fjord.example", domain="fjord.example", notes="one\ntwo"),
    )


def test_rows_without_an_email_are_kept_and_blank_rows_are_not(tmp_path: Path) -> None:
    report = load(tmp_path, "name,email,company\nPer,,A\nIda,n/a,A\n,,\n\n,,A\n,only@fjord.example,A\n\n")
    assert [(contact.name, contact.email) for contact in report.contacts] == [
        ("Per", None),
        ("Ida", None),
        ("only@fjord.example", "only@fjord.example"),
    ]
    assert (report.rows, report.missing_email, [bad.line for bad in report.bad]) == (4, 2, [6])


def test_an_email_and_a_domain_that_are_none_are_named_and_their_row_goes_in_without(tmp_path: Path) -> None:
    rows = ["Per,per@fjord,A,fjord.example", "Ida,ida@nordlys.example,B,no domain", "Åse,,C,", f"Jon,{'x' * 200},D,"]
    report = load(tmp_path, "\n".join(["name,email,company,website", *rows, ",nobody,,"]))
    assert [(contact.name, contact.email, contact.domain) for contact in report.contacts] == [
        ("Per", None, "fjord.example"),
        ("Ida", "ida@nordlys.example", None),
        ("Åse", None, None),
        ("Jon", None, None),
    ]
    assert [str(cell) for cell in report.emptied] == [
        "line 2: email: 'per@fjord' is no address",
        "line 3: domain: 'no domain' is no domain",
        f"line 5: email: '{'x' * 60}' is no address",
    ]
    assert [bad.line for bad in report.bad] == [6]


def test_a_name_written_last_comma_first_is_turned(tmp_path: Path) -> None:
    assert load(tmp_path, 'name,email,company\n"Müller, Anna",,A\n').contacts[0].name == "Anna Müller"


def test_trailing_delimiters_are_no_columns(tmp_path: Path) -> None:
    assert load(tmp_path, "name,email,company,,\nPer,,A,,\n").contacts[0].company == "A"


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("", "empty"),
        ("\ufeff\r\n\r\n", "empty"),
        ("name,email,company\n", "no rows"),
        ("name|email|company\nPer|p@x.example|A\n", "no comma, semicolon or tab"),
        ("name,email,company,shoe size,Hat\nPer,,A,44,L\n", r"unknown columns: shoe size, Hat;.*Accepted: first_name,"),
        ("name,company\nPer,A\n", "lacks required columns: email"),
        ("first name,email,company\nPer,,A\n", r"lacks required columns: full_name \(or first_name and last_name\)"),
        ("name,email,mail,company\nPer,,,A\n", "more than one column for: email"),
        ("name,email,company\nPer,p@x.example,Fjord, AS\n", "line 2: more cells"),
        ('name,email,company\nIda,,B\n"Per,,A\n', "line 3: .*quotation mark"),
    ],
)
def test_a_file_that_cannot_be_loaded_is_told_in_one_sentence_with_the_remedy(
    tmp_path: Path, content: str, says: str
) -> None:
    with pytest.raises(CsvProblem, match=says) as caught:
        load(tmp_path, content)
    assert "contacts.csv" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_file_over_the_limit_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "contacts.csv"
    with path.open("wb") as file:
        file.truncate(MAX_BYTES + 1)
    with pytest.raises(CsvProblem, match="larger than 20 MB"):
        load_contacts(path)


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CsvProblem, match="is a folder"):
        load_contacts(tmp_path)
    with pytest.raises(CsvProblem, match="does not exist"):
        load_contacts(tmp_path / "none.csv")
    with pytest.raises(CsvProblem, match="not a regular file"):
        load_contacts(Path("/dev/null"))


def test_a_file_of_too_many_rows_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csv_file, "MAX_ROWS", 2)
    rows = "name,email,company\nPer,,A\n,,B\n"
    assert load(tmp_path, rows).rows == 2
    with pytest.raises(CsvProblem, match="more than 2 rows; split the export"):
        load(tmp_path, f"{rows}Ida,,A\n")


def test_a_bad_row_is_named_without_what_stood_in_it_and_keeps_no_other_out(tmp_path: Path) -> None:
    secret = "s" * 5000
    report = load(tmp_path, f"name,email,company,notes,website\nPer,per@x.example,A,{secret},\nIda,,A,,see notes\n")
    assert [contact.name for contact in report.contacts] == ["Ida"]
    assert report.contacts[0].domain is None
    assert [str(bad) for bad in report.bad] == ["line 2: notes: String should have at most 4000 characters"]


def test_one_domain_is_one_company_however_the_file_writes_it(tmp_path: Path) -> None:
    report = load(
        tmp_path,
        "name,email,company,website\nPer,,Bücher,https://www.bücher.example/\nIda,,Buecher AG,xn--bcher-kva.example\n",
    )
    assert [company.domain for company in report.companies] == ["xn--bcher-kva.example"]
    assert report.memberships == (0, 0)
