"""Embedded Postgres: a real server in a project's folder, from the programs of a wheel or of the system."""

from agentic.local.postgres.bootstrap import bootstrap_supabase
from agentic.local.postgres.errors import (
    DataFolderError,
    EmbeddedPostgresError,
    NoBinariesError,
    ServerFailedError,
    ServiceAccountError,
)
from agentic.local.postgres.server import DEFAULT_ROOT, EmbeddedPostgres
from agentic.local.postgres.temporary import temporary_postgres

__all__ = [
    "DEFAULT_ROOT",
    "DataFolderError",
    "EmbeddedPostgres",
    "EmbeddedPostgresError",
    "NoBinariesError",
    "ServerFailedError",
    "ServiceAccountError",
    "bootstrap_supabase",
    "temporary_postgres",
]
