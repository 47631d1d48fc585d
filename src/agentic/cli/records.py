"""The database side of a command: the stores and services it needs, without agents, models or the web.

``bootstrap.open_platform`` joins a whole deployment; a command that lists or decides needs neither an app nor the agent
framework, which takes longer to import than the command takes to run. The embedded server is started for the command's length.
"""

import asyncio
import os
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeVar
from uuid import UUID

from agentic.cli.event_bus import bus_of
from agentic.cli.vendors import reach_vendors_of
from agentic.contract.errors import ProgramFault
from agentic.local.home import DATABASE_URL, Home
from agentic.local.program import command
from agentic.services.approvals.service import ApprovalService
from agentic.services.audit.service import AuditService
from agentic.services.journal.service import JournalService
from agentic.services.outbox.service import Outbox
from agentic.services.tools.scoped_db import ScopedDatabase
from agentic.storage.approval_store import PostgresApprovalStore
from agentic.storage.audit_store import PostgresAuditStore
from agentic.storage.catalogue_store import PostgresCatalogueStore
from agentic.storage.connection import describe
from agentic.storage.database import Database
from agentic.storage.event_store import PostgresEventStore
from agentic.storage.journal_store import PostgresJournalStore
from agentic.storage.member_store import PostgresMemberStore
from agentic.storage.migrations import MigrationState, status
from agentic.storage.outbox_store import PostgresOutboxStore
from agentic.storage.policy_store import PostgresPolicyStore
from agentic.storage.pool import open_pool
from agentic.storage.retention_store import PostgresRetentionStore
from agentic.storage.run_store import PostgresRunStore
from agentic.storage.scoped_db import scoped_db
from agentic.storage.usage_store import PostgresUsageStore

T = TypeVar("T")
Flush = Callable[[Sequence[UUID]], Awaitable[None]]


@dataclass(frozen=True, kw_only=True, slots=True)
class Records:
    """One organization's rows, and what may be done to them."""

    organization_id: UUID
    database: Database
    """For a group that has a store of its own."""
    runs: PostgresRunStore
    events: PostgresEventStore
    approvals: ApprovalService
    journal: JournalService
    audit: AuditService
    catalogue: PostgresCatalogueStore
    rules: PostgresPolicyStore
    members: PostgresMemberStore
    usage: PostgresUsageStore
    retention: PostgresRetentionStore
    flush: Flush
    tables: Callable[[], AbstractAsyncContextManager[ScopedDatabase]]
    """Opens the tables that tools keep, wherever a deployment of this environment has them."""


def home_of(folder: Path | None) -> Home:
    """The folder a command works with."""
    return Home() if folder is None else Home(folder)


def with_records(folder: Path | None, organization: UUID | None, act: Callable[[Records], Awaitable[T]]) -> T:
    """Open the database, check its schema, and run ``act`` on it.

    Args:
        folder: of the embedded database and the identity; ``None`` is the default one.
        organization: whose rows; ``None`` is the identity's.
        act: what the command does.

    Raises:
        ProgramFault: there is no database yet, or this build does not run on its schema; the message names the command that helps.
        StorageUnavailable: nobody answers at ``DATABASE_URL``.
    """
    home = home_of(folder)
    home.check()
    again = command(folder)
    if not os.environ.get(DATABASE_URL) and not home.folder.exists():
        raise ProgramFault(
            f"there is no folder {home.folder} here, so there is no database; run '{again} demo' or '{again} db migrate', "
            "name another folder with --folder, or set DATABASE_URL"
        )
    with home.database() as url:
        reach_vendors_of(home, url)
        organization_id = organization or home.identity().organization_id
        return asyncio.run(_act(url, home.folder, organization_id, act, again))


def acting(folder: Path | None, person: UUID | None) -> UUID:
    """Who a command acts as."""
    return person or home_of(folder).identity().user_id


async def _act(url: str, folder: Path, organization_id: UUID, act: Callable[[Records], Awaitable[T]], again: str) -> T:
    await check_schema(url, again)
    async with open_pool(url, max_size=2) as pool:
        database = Database(pool)
        flush = _flush(database, folder, url)
        return await act(
            Records(
                organization_id=organization_id,
                database=database,
                runs=PostgresRunStore(database),
                events=PostgresEventStore(database),
                approvals=ApprovalService(store=PostgresApprovalStore(database), flush=flush),
                journal=JournalService(PostgresJournalStore(database)),
                audit=AuditService(PostgresAuditStore(database)),
                catalogue=PostgresCatalogueStore(database),
                rules=PostgresPolicyStore(database),
                members=PostgresMemberStore(database),
                usage=PostgresUsageStore(database),
                retention=PostgresRetentionStore(database),
                flush=flush,
                tables=partial(scoped_db, url),
            )
        )


async def check_schema(url: str, again: str) -> None:
    """Refuse a database whose schema this build does not run on.

    Migrations that only the database knows are no reason: the release before runs on the schema of the next, and a product has its own.

    Raises:
        ProgramFault: the message names the command that helps.
    """
    states = [migration.state for migration in await status(url)]
    pending = states.count(MigrationState.PENDING)
    if pending == len(states):
        raise ProgramFault(f"the database {describe(url)} has no tables of agentic yet; run '{again} db migrate'")
    if pending:
        raise ProgramFault(
            f"the database {describe(url)} lacks migrations of this build ({pending}); run '{again} db migrate'"
        )
    if MigrationState.CHANGED in states:
        raise ProgramFault(
            f"the database {describe(url)} is not of this build; '{again} db status' says where they differ"
        )


def _flush(database: Database, folder: Path, url: str) -> Flush:
    async def flush(ids: Sequence[UUID]) -> None:
        bus = await asyncio.to_thread(bus_of, folder, url) if ids else None
        if bus is not None:
            await Outbox(store=PostgresOutboxStore(database), bus=bus).flush(ids)

    return flush
