"""Loads the SQL of `queries/*.sql`: every statement has a name and a line that says what it is for.

    -- name: take_lease
    -- Takes a run whose lease is free or over.
    update agent.runs ...

A line `-- include: name` of a statement stands for what `fragments.sql` has under that name, which statements of several files share.
What the statements mean is the business of the stores that run them.
"""

import functools
import itertools
import re
import textwrap
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import LiteralString, NoReturn

from agentic.contract.errors import ProgramFault

_FOLDER = Path(__file__).parent / "queries"
_HEADER = re.compile(r"^--[ \t]*name:[ \t]*(?P<name>.*?)[ \t]*$", re.MULTILINE)
_INCLUDE = re.compile(r"^(?P<indent>[ \t]*)--[ \t]*include:[ \t]*(?P<name>.*?)[ \t]*$", re.MULTILINE)
_FRAGMENTS = "fragments"
_NAME = re.compile(r"[a-z][a-z0-9_]*")


class QueryFileError(ProgramFault):
    """A file of queries is missing or not in the agreed form; the message names the file and the query."""


@functools.cache
def load_queries(group: str, *, folder: Path = _FOLDER) -> Mapping[str, LiteralString]:
    """The statements of one file by name, read once a process.

    Args:
        group: Name of the file without its suffix, such as `runs`.
        folder: Where the files are; the package's own unless a test says otherwise.

    Returns:
        Name to statement. The text comes from the package, never from input, hence the type that psycopg asks for.

    Raises:
        QueryFileError: The file is missing, a name repeats or is malformed, a query lacks its purpose or statement, or includes
            what is not there.
    """
    path = folder / f"{group}.sql"
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise QueryFileError(
            f"there is no file of queries {path}; a group of queries is named after its file."
        ) from None
    headers = list(_HEADER.finditer(text))
    before = text[: headers[0].start()] if headers else text
    if not headers or not all(map(_is_comment_or_blank, before.splitlines())):
        _refuse(path, "it has to begin with '-- name: some_name' (comments may precede it)")
    ends = [header.start() for header in headers[1:]] + [len(text)]
    queries: dict[str, LiteralString] = {}
    for header, end in zip(headers, ends, strict=True):
        name = header["name"]
        if not _NAME.fullmatch(name):
            _refuse(path, f"the name {name!r} has to be lower case letters, digits and underscores")
        if name in queries:
            _refuse(path, f"the name {name} is there twice")
        queries[name] = _included(path, name, _statement(path, name, text[header.end() : end]))
    return MappingProxyType(queries)


def _statement(path: Path, name: str, body: str) -> LiteralString:
    lines = body.strip().splitlines()
    if not lines or not lines[0].startswith("--") or not lines[0].strip("- "):
        _refuse(path, f"{name} needs a comment below its name that says what it is for")
    # the purpose stays here: a % in it would be a placeholder to the driver
    statement = "\n".join(itertools.dropwhile(_is_comment_or_blank, lines)).strip().rstrip(";").rstrip()
    if not statement:
        _refuse(path, f"{name} has no statement")
    return statement


def _included(path: Path, name: str, statement: str) -> LiteralString:
    def fragment(include: re.Match[str]) -> str:
        fragments = {} if path.stem == _FRAGMENTS else load_queries(_FRAGMENTS, folder=path.parent)
        if include["name"] not in fragments:
            _refuse(
                path,
                f"{name} includes {include['name']!r}, which is none of {_FRAGMENTS}.sql; a fragment includes none",
            )
        return textwrap.indent(fragments[include["name"]], include["indent"])

    return _INCLUDE.sub(fragment, statement)


def _is_comment_or_blank(line: str) -> bool:
    return not line.strip() or (line.lstrip().startswith("--") and not _INCLUDE.match(line))


def _refuse(path: Path, why: str) -> NoReturn:
    raise QueryFileError(f"{path}: {why}.")
