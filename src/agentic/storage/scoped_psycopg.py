"""Tables in schema ``public`` over a connection to Postgres: a verb is one statement and one round trip.

They are asked as the interface of Supabase asks them: under the role and the claims of a token, which end with the transaction, so
that what is allowed and what comes back is the same.
"""

import json
from collections.abc import Mapping
from typing import Final
from uuid import UUID

import psycopg

from agentic.contract.json_types import JsonValue
from agentic.services.tools.scoped_queries import Query, Row
from agentic.storage.database import Database, WrittenFirst
from agentic.storage.queries import load_queries
from agentic.storage.scoped_refusals import refusal
from agentic.storage.table_statements import statement_of

SERVICE: Final[Mapping[str, JsonValue]] = {"role": "service_role"}
"""The claims of the service: it passes row level security, and filters itself."""

_QUERIES: Final = load_queries("scoped")


class PostgresTables:
    """Tables, asked with the columns that a store holds fixed.

    Args:
        database: connected as a member of the role.
        claims: those of the token that Supabase's interface would be given; ``role`` is whom the database takes it for.
    """

    def __init__(self, database: Database, *, claims: Mapping[str, JsonValue] = SERVICE) -> None:
        self._database = database
        self._settings = {"role": claims["role"], "claims": json.dumps(claims)}

    async def ask(self, query: Query, *, fixed: Mapping[str, object]) -> list[Row]:
        """The rows of a query.

        Args:
            query: names tables and columns that were checked.
            fixed: columns that all rows concerned have these values in.

        Raises:
            KeyTaken, ReferenceMissing, ProgramFault, StorageUnavailable: as ``ScopedRows.run`` says.
        """
        statement, params = statement_of(query, fixed)
        try:
            rows = await self._database.all_under((_QUERIES["as_role"], self._settings), statement, params)
        except WrittenFirst as error:
            raise refusal(query.table, sqlstate="23505", constraint=error.constraint, message=None) from error
        except psycopg.Error as error:
            raise refusal(
                query.table,
                sqlstate=error.sqlstate,
                constraint=error.diag.constraint_name,
                message=error.diag.message_primary,
            ) from error
        return [row["row"] for row in rows]


class PostgresRows:
    """Implements ``ScopedRows``: the organization is fixed in every query. Arguments as for ``PostgresTables``."""

    def __init__(self, database: Database, *, claims: Mapping[str, JsonValue] = SERVICE) -> None:
        self._tables = PostgresTables(database, claims=claims)

    async def run(self, organization_id: UUID, query: Query) -> list[Row]:
        """Run it; raises as the port says."""
        return await self._tables.ask(query, fixed={"organization_id": organization_id})
