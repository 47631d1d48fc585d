"""Starting a run from the command line: the app is loaded, the run stored, and whoever runs the functions leads it."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

from agentic.bootstrap import open_platform
from agentic.cli.app_path import app_at
from agentic.cli.event_bus import LeftToTheSweep, bus_of
from agentic.cli.output import say
from agentic.cli.records import check_schema, home_of
from agentic.cli.vendors import reach_vendors_of
from agentic.contract.lanes import Lane
from agentic.contract.principal import Principal
from agentic.local.program import command
from agentic.services.outbox.service import EventBus
from agentic.storage.supabase_object_store import object_store_of

LOOK_S = 0.5


@dataclass(frozen=True, kw_only=True, slots=True)
class Wanted:
    """What the person asks for."""

    agent: str
    text: str
    request_key: str
    session: str | None
    lane: Lane
    deadline_s: float | None
    wait: bool


def start(
    folder: Path | None, app_path: str, wanted: Wanted, *, organization: UUID | None, user_id: UUID
) -> tuple[bool, Mapping[str, Any]]:
    """Start the run; whether it is new, and its row.

    Raises:
        ProgramFault: there is no such app or agent, it cannot be started, or the schema is not this build's.
        Conflict: the request key was used for something else.
        StorageUnavailable: nobody answers at the database.
    """
    home = home_of(folder)
    home.check()
    with home.database() as url:
        home.name_mcp_servers()
        reach_vendors_of(home, url)
        principal = Principal(organization_id=organization or home.identity().organization_id, user_id=user_id)
        bus = bus_of(home.folder, url) or LeftToTheSweep()
        return asyncio.run(_start(url, bus, app_path, wanted, principal, command(folder)))


async def _start(
    url: str, bus: EventBus, app_path: str, wanted: Wanted, principal: Principal, again: str
) -> tuple[bool, Mapping[str, Any]]:
    await check_schema(url, again)
    async with (
        app_at(app_path) as app,
        object_store_of() as bodies,
        open_platform(app, url, bus=bus, artifact_bodies=bodies, max_connections=2) as platform,
    ):
        started = await platform.runs.start(
            wanted.agent,
            wanted.text,
            principal=principal,
            request_key=wanted.request_key,
            session=wanted.session,
            lane=wanted.lane,
            deadline_s=wanted.deadline_s,
        )
        row = await platform.runs.get(principal.organization_id, started.run_id)
        if wanted.wait:
            say(f"run {started.run_id} is started; waiting for it")
        while wanted.wait and row["state"] in ("queued", "running"):
            await asyncio.sleep(LOOK_S)
            row = await platform.runs.get(principal.organization_id, started.run_id)
        return started.created, row
