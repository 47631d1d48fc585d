"""Reads the migration files: `<version>_<name>.sql`, in the order of their versions."""

import itertools
import re
from dataclasses import dataclass
from pathlib import Path

from agentic.storage.migration_errors import MigrationFilesError
from agentic.storage.sql_text import SqlTextError, essence, first_words, split_statements

_FILE_NAME = re.compile(r"(?P<version>[0-9]+)_(?P<name>.*)\.sql")
_TRANSACTION_WORDS = frozenset({"begin", "commit", "rollback", "abort", "end"})


@dataclass(frozen=True, kw_only=True)
class Migration:
    """One file.

    Attributes:
        version: The digits before the first underscore, compared as text as the Supabase CLI does.
        name: What follows them, without the suffix.
        file: Name of the file.
        statements: Its content, one statement an item.
    """

    version: str
    name: str
    file: str
    statements: tuple[str, ...]

    def is_recorded_as(self, statements: list[str]) -> bool:
        """Whether recorded statements say the same, comments and layout aside."""
        if statements == list(self.statements):  # each command asks this of every file
            return True
        return essence("\n;\n".join(self.statements)) == essence(";\n".join(statements))


def default_folder() -> Path:
    """Where the migrations are: beside this file in an installed package, `supabase/migrations` in a checkout.

    Raises:
        MigrationFilesError: In neither place.
    """
    packaged = Path(__file__).parent / "migrations"
    checkout = Path(__file__).parents[3] / "supabase" / "migrations"
    for folder in (packaged, checkout):
        if folder.is_dir():
            return folder
    raise MigrationFilesError(
        f"the migrations are missing: neither {packaged} nor {checkout} exists. Install the package again."
    )


def read_migrations(folder: Path) -> list[Migration]:
    """Every migration of a folder, oldest first.

    Raises:
        MigrationFilesError: No file at all, a name out of form, a version twice, or text that is not SQL.
    """
    paths = sorted(folder.glob("*.sql"))
    if not paths:
        raise MigrationFilesError(f"there is no migration in {folder}; a migration is named <version>_<name>.sql.")
    migrations = sorted((_read(path) for path in paths), key=lambda migration: migration.version)
    for earlier, later in itertools.pairwise(migrations):
        if earlier.version == later.version:
            raise MigrationFilesError(
                f"{earlier.file} and {later.file} have the same version; give the newer one its own."
            )
    return migrations


def _read(path: Path) -> Migration:
    parts = _FILE_NAME.fullmatch(path.name)
    if parts is None:
        raise MigrationFilesError(f"{path} is not named <version>_<name>.sql, with a version of digits; rename it.")
    try:
        statements = split_statements(path.read_text(encoding="utf-8"))
    except (SqlTextError, UnicodeDecodeError) as error:
        raise MigrationFilesError(f"{path} cannot be read as SQL: {error}.") from error
    for number, statement in enumerate(statements, start=1):
        words = first_words(statement)
        if words[:1] and (words[0] in _TRANSACTION_WORDS or words == ("start", "transaction")):
            raise MigrationFilesError(
                f"{path}: statement {number} is '{words[0]}'. A file is one transaction already; remove it, "
                "or split the file in two."
            )
    return Migration(version=parts["version"], name=parts["name"], file=path.name, statements=tuple(statements))
