"""Tables of organizations, reached by both adapters, for tests: one migrated database a worker, with PostgREST before it where it is.

Organizations are new in each test, so tests share the database. Beside the package's tables it has those of a product.
"""

from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Final
from uuid import uuid4

import psycopg
import pytest

from agentic.contract.json_types import JsonValue
from agentic.services.tools.scoped_db import ScopedDatabase, ScopedDatabaseOver, ScopedDb, ScopedRows
from agentic.services.tools.scoped_queries import Eq, Row
from agentic.services.tools.scoped_tables import ORG_SCOPED_TABLES, Tables
from agentic.storage.database import Database
from agentic.storage.pool import open_pool
from agentic.storage.scoped_psycopg import SERVICE, PostgresRows
from supabase_interface import MISSING, is_there, rows_over, supabase_interface

PSYCOPG: Final = "psycopg"
SUPABASE: Final = "supabase"
NEEDS_INTERFACE: Final = pytest.mark.skipif(not is_there(), reason=MISSING)
ADAPTERS: Final = (PSYCOPG, pytest.param(SUPABASE, marks=NEEDS_INTERFACE))
"""For a parametrised fixture or test: both ways to the tables."""

PRODUCT_TABLES: Final[Tables] = {
    "shop_orders": frozenset(
        {"id", "note", "tags", "amount", "pieces", "weight", "paid", "placed_at", "customer"},
    )
}
_PRODUCT: Final = """
create table public.shop_orders (
    organization_id uuid not null,
    id uuid not null default gen_random_uuid(),
    note text, tags text[], amount numeric(12, 2), pieces int, weight double precision, paid boolean, placed_at timestamptz, customer uuid,
    constraint shop_orders_pk primary key (organization_id, id)
);
alter table public.shop_orders enable row level security;
revoke all on public.shop_orders from public, anon, authenticated;
grant select, insert, update, delete on public.shop_orders to service_role;

create table public.shop_currencies (code text primary key, name text not null);
alter table public.shop_currencies enable row level security;
revoke all on public.shop_currencies from public, anon, authenticated;
grant select, insert, update, delete on public.shop_currencies to service_role;
"""


@dataclass(frozen=True, kw_only=True)
class Stage:
    """Where the tables are.

    Attributes:
        database: by the way that tests take to a database, a pooler perhaps.
        direct: the same, past any pooler, as its owner.
        interface: PostgREST before it; ``None`` where there is none.
    """

    database: str
    direct: str
    interface: str | None

    @asynccontextmanager
    async def rows(self, adapter: str, claims: Mapping[str, JsonValue] = SERVICE) -> AsyncIterator[ScopedRows]:
        """The adapter of this name, asking under these claims."""
        if adapter == PSYCOPG:
            async with open_pool(self.database, max_size=4) as pool:
                yield PostgresRows(Database(pool), claims=claims)
        else:
            assert self.interface is not None, MISSING
            async with rows_over(self.interface, claims) as rows:
                yield rows

    @asynccontextmanager
    async def tables(
        self, adapter: str, claims: Mapping[str, JsonValue] = SERVICE, *, of: Tables | None = None
    ) -> AsyncIterator[ScopedDatabase]:
        """The package's tables and the product's by this adapter."""
        async with self.rows(adapter, claims) as rows:
            yield ScopedDatabaseOver(rows, tables=of or {**ORG_SCOPED_TABLES, **PRODUCT_TABLES})

    @asynccontextmanager
    async def both(self) -> AsyncIterator[tuple[ScopedDatabase, ScopedDatabase]]:
        """Both adapters over the same rows."""
        async with AsyncExitStack() as stack:
            first, second = [await stack.enter_async_context(self.tables(name)) for name in (PSYCOPG, SUPABASE)]
            yield first, second


@contextmanager
def stage_over(database: str, direct: str) -> Iterator[Stage]:
    """A stage over a fresh, migrated database, until the block ends."""
    with psycopg.connect(direct) as connection:
        connection.execute(_PRODUCT)
    with supabase_interface(direct) if is_there() else nullcontext() as interface:
        yield Stage(database=database, direct=direct, interface=interface)


def claims_of(organization: object) -> dict[str, JsonValue]:
    """The claims of a person who is signed in to an organization."""
    return {
        "role": "authenticated",
        "sub": str(uuid4()),
        "app_metadata": {"organization_id": str(organization)},
        # what its bearer can write says something else
        "user_metadata": {"organization_id": str(uuid4())},
    }


async def planted(db: ScopedDb, table: str) -> Row:
    """One row of a table with whatever it refers to; its key columns."""
    key = uuid4().hex
    named = {"name": f"Ada {key}", "name_key": f"ada {key}"}
    match table:
        case "crm_companies" | "crm_lists":
            values: dict[str, object] = {**named}
        case "crm_people":
            company = await planted(db, "crm_companies")
            values = {**named, "email": f"{key}@a.test", "email_key": f"{key}@a.test", "company_id": company["id"]}
        case "crm_list_members":
            friends, person = await planted(db, "crm_lists"), await planted(db, "crm_people")
            values = {"list_id": friends["id"], "person_id": person["id"]}
        case "agent_memories":
            values = {"subject_kind": "company", "subject_ref": "c", "kind": "preference", "key": key, "text": "short"}
        case "shop_orders":
            values = {"note": "two of them"}
        case _:
            raise AssertionError(f"say here what a row of {table} needs")
    (row,) = await db.insert(table, [values], returning=KEYS.get(table, ("id",)))
    return row


KEYS: Final = {"crm_list_members": ("list_id", "person_id")}
"""The primary key beside the organization, where it is not ``id``."""


def of_key(row: Row) -> list[Eq]:
    """The conditions that mean this row."""
    return [Eq(column, str(value)) for column, value in row.items()]
