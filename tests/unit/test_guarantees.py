"""Every promise is proven by a test or waits for one by name, and the page about them is current."""

from pathlib import Path

import pytest

import guarantees
from guarantees import Promises, Proofs, disagreements, read_promises, read_proofs, render

PROMISES = read_promises(guarantees.ROOT / "docs" / "guarantees.toml")
# what the first governed run rests on; these may never wait for a test again
PROVEN = ["D1", "D3", "D5", "A1", "A2", "J1", "J2", "J4", "B1", "B2", "T2", "N1", "N2"]


@pytest.fixture(scope="module")
def proofs() -> Proofs:
    return read_proofs(guarantees.ROOT / "tests")


def test_every_promise_has_a_test_or_waits_for_one_and_no_test_names_an_unknown_promise(proofs: Proofs) -> None:
    assert disagreements(PROMISES, proofs) == []


@pytest.mark.parametrize("identifier", PROVEN)
def test_a_promise_of_the_first_run_has_a_test(identifier: str, proofs: Proofs) -> None:
    assert identifier in proofs.tests
    assert identifier not in PROMISES.pending


def test_the_page_of_promises_is_what_make_docs_writes(proofs: Proofs) -> None:
    page = guarantees.ROOT / "docs" / "guarantees.md"
    assert page.read_text(encoding="utf-8") == render(PROMISES, proofs), "run make docs"


def promises(**pending: str) -> Promises:
    return Promises(areas={"D": "Decide"}, guarantees={"D1": "One.", "D2": "Two."}, pending=pending)


@pytest.mark.parametrize(
    ("tests", "pending", "sentence"),
    [
        ({"D1": ["t::a"]}, {}, "D2 has no test"),
        ({"D1": ["t::a"], "D2": ["t::b"]}, {"D2": "later"}, "D2 is pending although t::b proves it"),
        ({"D1": ["t::a"], "D2": ["t::b"], "D9": ["t::c"]}, {}, "D9 is no promise of docs/guarantees.toml, but t::c"),
        ({"D1": ["t::a"], "D2": ["t::b"]}, {"D7": "later"}, "D7 is pending but no promise"),
    ],
)
def test_a_disagreement_is_named(tests: dict[str, list[str]], pending: dict[str, str], sentence: str) -> None:
    [found] = disagreements(promises(**pending), Proofs(tests=tests))
    assert found.startswith(sentence)


def test_markers_of_modules_classes_tests_and_cases_are_collected(tmp_path: Path) -> None:
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_sample.py").write_text(
        """
import pytest
pytestmark = [pytest.mark.guarantee("D1")]
@pytest.mark.guarantee("D2", "D3")
class TestGroup:
    @pytest.mark.guarantee("D4")
    async def test_method(self): ...
@pytest.mark.parametrize("case", [pytest.param(1, marks=pytest.mark.guarantee("D5"))])
def test_cases(case): ...
""",
        encoding="utf-8",
    )
    method, cases = "tests/test_sample.py::TestGroup::test_method", "tests/test_sample.py::test_cases"
    assert read_proofs(tmp_path / "tests") == Proofs(
        tests={"D1": [method, cases], "D2": [method], "D3": [method], "D4": [method], "D5": [cases]}
    )


@pytest.mark.parametrize(
    ("source", "sentence"),
    [
        ('@pytest.mark.guarantee("D1")\ndef helper(): ...', "tests/test_sample.py:1 marks no test"),
        ("@pytest.mark.guarantee(NAME)\ndef test_it(): ...", "tests/test_sample.py:1 must name its ids"),
        ("@pytest.mark.guarantee()\ndef test_it(): ...", "tests/test_sample.py:1 must name its ids"),
    ],
)
def test_a_marker_that_proves_nothing_is_named(tmp_path: Path, source: str, sentence: str) -> None:
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_sample.py").write_text(source, encoding="utf-8")
    [found] = read_proofs(tmp_path / "tests").misplaced
    assert found.startswith(sentence)
