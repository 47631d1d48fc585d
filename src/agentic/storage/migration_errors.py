"""Why a database cannot be brought to the schema of this build. Nothing was changed in the file that is named."""

from agentic.contract.errors import ProgramFault


class MigrationError(ProgramFault):
    """The schema was not brought up to date; the message says why and what to do."""


class MigrationFilesError(MigrationError):
    """The migration files are at fault: missing, misnamed, two of one version, or not readable as SQL."""


class MigrationFailed(MigrationError):
    """Postgres refused a statement; its whole file was rolled back.

    Attributes:
        file: Name of the file.
        statement: Number of the statement in it, from 1.
        sqlstate: Postgres' five-character code, None when the connection broke.
    """

    def __init__(self, message: str, *, file: str, statement: int, sqlstate: str | None) -> None:
        """Takes the whole message and the facts in it."""
        super().__init__(message)
        self.file = file
        self.statement = statement
        self.sqlstate = sqlstate


class MigrationChanged(MigrationError):
    """A file was edited after it had been applied."""


class MigrationOutOfOrder(MigrationError):
    """A file that was never applied is older than one that was."""


class DatabaseNotOurs(MigrationError):
    """The database has a schema `agent` that no recorded migration made."""


class RolesMissing(MigrationError):
    """The server lacks the roles that Supabase provides and the migrations name. Nothing was changed."""


class DatabaseNewer(MigrationError):
    """The database records migrations that this build does not have."""


class ServerTooOld(MigrationError):
    """The server is older than any that the migrations are written for."""
