"""The repository speaks of itself alone, installs reproducibly, and says what each of its modules is for."""

import ast
import importlib
import os
import re
import tomllib
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MODULES = sorted((ROOT / "src").rglob("*.py"))
PACKAGES = [path for path in MODULES if path.name == "__init__.py"]
RUNTIME, DEV = ROOT / "requirements" / "runtime.txt", ROOT / "requirements" / "dev.txt"

# dots and slashes in brackets: a pattern does not match itself
REGISTRIES = re.compile(
    r"pypi[.]|pythonhosted[.]|npmjs[.]|debian[.]org|(?<!emit)-index-url|(?<!emit)-find-links|extra-index"
)
MACHINES = re.compile(r"(?<![\w.])(?:[/]work[/]|[/]root[/]|[/]home[/]\w|[/]Users[/]\w|[/]tmp[/]\w)")
PIN = re.compile(r"(?P<name>[a-z0-9][a-z0-9.-]*(\[[a-z0-9,-]+\])?)==(?P<version>[^ ]+)( ; (?P<where>[^\\]+))? \\")
HASH = re.compile(r"    --hash=sha256:[0-9a-f]{64}( \\)?")


def name(path: Path) -> str:
    """The path as a person names it."""
    return path.relative_to(ROOT).as_posix()


def own_files() -> Iterator[tuple[str, str]]:
    """Name and text of every file that git would keep, without asking git: a tarball has none."""
    patterns = [line.rstrip("/") for line in (ROOT / ".gitignore").read_text(encoding="utf-8").split()]

    def kept(entry: str) -> bool:
        return entry != ".git" and not any(fnmatch(entry, pattern) for pattern in patterns)

    for folder, folders, files in os.walk(ROOT):
        folders[:] = filter(kept, folders)
        for file in filter(kept, files):
            path = Path(folder, file)
            yield name(path), path.read_text(encoding="utf-8", errors="ignore")


@pytest.mark.parametrize("pattern", [REGISTRIES, MACHINES], ids=["registry", "machine"])
def test_no_file_names_a_registry_or_a_path_of_one_machine(pattern: re.Pattern[str]) -> None:
    found = [
        f"{file}:{number}: {line.strip()}"
        for file, text in own_files()
        for number, line in enumerate(text.splitlines(), 1)
        if pattern.search(line) and file != name(Path(__file__))
    ]
    assert found == []


def pins(lock: Path) -> dict[tuple[str, str | None], str]:
    """What a lock pins: the version by package and by where it applies."""
    lines = [match for line in lock.read_text(encoding="utf-8").splitlines() if (match := PIN.fullmatch(line))]
    return {(line["name"], line["where"]): line["version"] for line in lines}


@pytest.mark.parametrize("lock", [RUNTIME, DEV], ids=name)
def test_a_lock_holds_pins_and_hashes_and_nothing_else(lock: Path) -> None:
    lines = lock.read_text(encoding="utf-8").splitlines()
    assert [line for line in lines if not PIN.fullmatch(line) and not HASH.fullmatch(line)] == []
    assert len(pins(lock)) > 20


def test_an_environment_for_tests_serves_the_demo_too() -> None:
    assert pins(RUNTIME).items() <= pins(DEV).items()


@pytest.mark.parametrize("lock", [RUNTIME, DEV], ids=name)
def test_a_lock_holds_every_dependency_that_the_package_names(lock: Path) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    wanted = [*project["project"]["dependencies"], *project["dependency-groups"]["build"]]
    if lock == DEV:
        wanted += [each for each in project["dependency-groups"]["dev"] if isinstance(each, str)]
        wanted += [each for extra in project["project"]["optional-dependencies"].values() for each in extra]
    names = {re.split(r"[\[<>=~!; ]", requirement)[0].lower() for requirement in wanted}
    assert names - {package.partition("[")[0] for package, _ in pins(lock)} == set(), "run make lock"


def test_every_module_says_what_it_is_for() -> None:
    silent = [name(path) for path in MODULES if not ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))]
    assert silent == []


def public_names(module: ast.Module) -> set[str]:
    """What a package binds for others: its imports from this package and its definitions, without a leading underscore."""
    lazy = any(isinstance(node, ast.FunctionDef) and node.name == "__getattr__" for node in module.body)
    bound: set[str] = set()
    for node in module.body:
        if isinstance(node, ast.If) and lazy and ast.unparse(node.test) == "TYPE_CHECKING":
            bound |= {
                alias.asname or alias.name
                for each in node.body
                if isinstance(each, ast.ImportFrom)
                for alias in each.names
            }
        elif isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "agentic":
            bound |= {alias.asname or alias.name for alias in node.names}
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            bound.add(node.name)
        elif isinstance(node, ast.Assign):
            bound |= {target.id for target in node.targets if isinstance(target, ast.Name)}
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            bound.add(node.target.id)
    return {each for each in bound if not each.startswith("_")}


def public_list(module: ast.Module) -> list[str]:
    """The package's `__all__`, empty when it has none."""
    for node in module.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return list(ast.literal_eval(node.value))
    return []


@pytest.mark.parametrize("path", PACKAGES, ids=name)
def test_the_public_list_of_a_package_is_what_it_binds(path: Path) -> None:
    module = ast.parse(path.read_text(encoding="utf-8"))
    listed = public_list(module)
    assert sorted(listed) == sorted(public_names(module))
    assert len(listed) == len(set(listed))


@pytest.mark.parametrize("path", PACKAGES, ids=name)
def test_every_name_of_a_public_list_can_be_imported(path: Path) -> None:
    package = importlib.import_module(".".join(path.parent.relative_to(ROOT / "src").parts))
    assert [each for each in getattr(package, "__all__", ()) if not hasattr(package, each)] == []


def test_the_package_is_marked_as_typed() -> None:
    assert (ROOT / "src" / "agentic" / "py.typed").exists()
