"""The policy service of a command: over the tools of an app, or over those that the database knows.

Without an app nothing can find facts out and their types are not known, so rules about facts are checked by name alone.
"""

from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar
from uuid import UUID

from pydantic import BaseModel

from agentic.cli.app_path import app_at
from agentic.cli.records import Records, acting, with_records
from agentic.contract.clock import SystemClock
from agentic.services.policy import Fact, FactRegistry, PolicyService
from agentic.services.policy.packaged_facts import with_packaged
from agentic.services.policy.url_seen import url_seen
from agentic.services.tools.context import CallContext
from agentic.services.tools.models import ToolSpec
from agentic.services.tools.registry import RESERVED_FACTS, URL_SEEN, build_registry
from agentic.storage.journal_store import PostgresJournalStore

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True, slots=True)
class PolicyDesk:
    """One organization's rules, and the person who works on them."""

    organization_id: UUID
    policy: PolicyService
    folder: Path | None

    def acting(self, person: UUID | None) -> UUID:
        """Who changes rules here."""
        return acting(self.folder, person)


def at_desk(
    folder: Path | None, organization: UUID | None, app_path: str | None, act: Callable[[PolicyDesk], Awaitable[T]]
) -> T:
    """Open the database, and run ``act`` on the rules.

    Args:
        folder: of the embedded database; ``None`` is the default one.
        organization: whose rules; ``None`` is the identity's.
        app_path: import path of the app, ``module:attribute``; ``None`` takes the tools that the database knows.

    Raises:
        ProgramFault: there is no database, or the app is at fault.
        StorageUnavailable: the database does not answer.
    """

    async def with_policy(records: Records) -> T:
        async with AsyncExitStack() as stack:
            policy = await (_of_database(records) if app_path is None else _of_app(records, app_path, stack))
            return await act(PolicyDesk(organization_id=records.organization_id, policy=policy, folder=folder))

    return with_records(folder, organization, with_policy)


async def _of_app(records: Records, path: str, stack: AsyncExitStack) -> PolicyService:
    app = await stack.enter_async_context(app_at(path))
    written_to = PostgresJournalStore(records.database).written_to
    facts = with_packaged(app.facts, words=_no_words, written_to=written_to)
    tools = {tool.spec.name: tool for tool in build_registry(app.declared_tools(), facts=facts.names)}
    specs = [tool.spec for tool in tools.values()]
    return PolicyService(store=records.rules, tools=specs, facts=facts, clock=SystemClock(), runnable=tools)


async def _of_database(records: Records) -> PolicyService:
    hashes = [tool["contract_hash"] for tool in await records.catalogue.tools(records.organization_id)]
    specs: list[ToolSpec] = list((await records.runs.contracts(hashes)).values())
    declared = {name for spec in specs for name in spec.policy_facts} - RESERVED_FACTS - {URL_SEEN}
    facts = FactRegistry([*(Fact(name=name, resolve=_unknown) for name in sorted(declared)), url_seen(_no_words)])
    return PolicyService(store=records.rules, tools=specs, facts=facts, clock=SystemClock())


async def _no_words(_ctx: CallContext) -> list[str]:
    """No run, so nothing was written in it."""
    return []


async def _unknown(_ctx: CallContext, _args: BaseModel) -> Any:
    """No answer: the code that finds facts out is in the app, which was not named."""
    return None
