"""What can go wrong with the embedded Postgres, told to a person: what happened, to what, what to do.

All are final for this attempt; somebody has to change something first. Database errors are psycopg's own.
"""

from agentic.contract.errors import AgenticError


class EmbeddedPostgresError(AgenticError):
    """The embedded Postgres cannot serve; the message names the remedy."""


class NoBinariesError(EmbeddedPostgresError):
    """No Postgres of a supported version was found that runs on this machine."""


class DataFolderError(EmbeddedPostgresError):
    """The data folder is not ours, not writable, or made by a version that these binaries cannot read."""


class ServiceAccountError(EmbeddedPostgresError):
    """Postgres cannot run under the current user, and no other account is there to run it."""


class ServerFailedError(EmbeddedPostgresError):
    """Postgres did not start, did not answer in time, or did not stop in time; the message quotes its log."""
