"""From an import path to an app, or to a sentence about it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from agentic.bootstrap import App
from agentic.contract.errors import ProgramFault
from agentic.local.worker.loading import loaded

HERE = __name__
plain = App()
closed: list[bool] = []
nothing = 7


def made() -> App:
    return plain


@asynccontextmanager
async def opened() -> AsyncIterator[App]:
    yield plain
    closed.append(True)


@pytest.fixture(autouse=True)
def importable(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "apps_of_a_test", sys.modules[HERE])


@pytest.mark.parametrize("attribute", ["plain", "made", "opened"])
async def test_an_app_a_maker_and_a_context_manager_all_give_the_app(attribute: str) -> None:
    closed.clear()
    async with loaded(f"apps_of_a_test:{attribute}") as app:
        assert app is plain
        assert not closed
    assert closed == ([True] if attribute == "opened" else [])


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("apps_of_a_test", "write module:attribute"),
        ("apps_of_a_test:", "write module:attribute"),
        ("no_such_module:app", "no module 'no_such_module'"),
        ("apps_of_a_test:missing", "has no 'missing'"),
        ("apps_of_a_test:nothing", "is int"),
    ],
)
async def test_a_path_that_leads_elsewhere_is_named(path: str, words: str) -> None:
    with pytest.raises(ProgramFault, match=words):
        async with loaded(path):
            pass


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("raise RuntimeError('no key')", r"importing it raised RuntimeError in .*broken_{0}\.py, line 1: no key"),
        ("def app(:", r"importing it raised SyntaxError: .*broken_{0}\.py, line 1"),
        ("import no_such_dependency", r"there is no module 'no_such_dependency'"),
    ],
)
async def test_a_module_that_cannot_be_imported_is_a_sentence_that_says_where(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, source: str, words: str
) -> None:
    name = f"broken_{abs(hash(source))}"
    (tmp_path / f"{name}.py").write_text(source)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ProgramFault, match=f"{name}:app: " + words.format(name.removeprefix("broken_"))):
        async with loaded(f"{name}:app"):
            pass
