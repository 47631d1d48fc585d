"""Whether the demo may make itself at home in a database: ours, or an empty one. Asked before anything is written there."""

from agentic.contract.errors import ProgramFault
from agentic.local.program import command
from agentic.storage.connection import connect, describe
from agentic.storage.migrations import MigrationState, status

_NAMED_AT_MOST = 3
_RELATIONS_OF_OTHERS = """
select c.relname as name
from pg_class c
where c.relnamespace = to_regnamespace('public') and c.relkind in ('r', 'p', 'v', 'm', 'f')
    and not exists (select from pg_depend d where d.classid = 'pg_class'::regclass and d.objid = c.oid and d.deptype = 'e')
order by c.relname
"""
"""Those of extensions left aside."""


class DatabaseInUse(ProgramFault):
    """The database belongs to something else; nothing was written."""


async def require_room(database_url: str) -> None:
    """Find out, changing nothing.

    Raises:
        DatabaseInUse: no migration of agentic was ever applied there, and ``public`` holds tables.
        StorageUnavailable: nobody answers there.
    """
    if any(migration.state is not MigrationState.PENDING for migration in await status(database_url)):
        return
    async with await connect(database_url) as connection:
        rows = await (await connection.execute(_RELATIONS_OF_OTHERS)).fetchall()
    if not rows:
        return
    names = ", ".join(str(row["name"]) for row in rows[:_NAMED_AT_MOST])
    more = f" and {len(rows) - _NAMED_AT_MOST} more" if len(rows) > _NAMED_AT_MOST else ""
    raise DatabaseInUse(
        f"the database {describe(database_url)} holds tables of something else ({names}{more}), so the demo left it untouched; "
        f"name an empty database in DATABASE_URL, or run '{command()} db migrate' first if you mean this one"
    )
