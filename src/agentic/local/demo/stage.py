"""Everything the demo runs on, started in order and stopped in the reverse order, whatever happens in between."""

import functools
import secrets
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID, uuid5

import httpx

from agentic.api.app import create_api
from agentic.api.auth import JwtAuthenticator
from agentic.bootstrap import Platform, api_ports, open_platform
from agentic.contract.principal import Role
from agentic.functions import run_advance
from agentic.functions.bus import InngestBus
from agentic.functions.serve import function_client
from agentic.local.crash_points import ArmedByFile
from agentic.local.demo import crash
from agentic.local.demo.app import demo_app
from agentic.local.demo.casting import Casting
from agentic.local.demo.database_check import require_room
from agentic.local.demo.decider import decide_and_die
from agentic.local.demo.email_tool import RUN_ID
from agentic.local.demo.enrichment.vendor import Vendor, price_credits
from agentic.local.demo.mcp.pottery import PotteryServer
from agentic.local.demo.membership import give_at_least
from agentic.local.demo.only_one import only_demo
from agentic.local.demo.options import DemoOptions
from agentic.local.demo.person import Person
from agentic.local.demo.screen import Screen
from agentic.local.demo.settings import EMAIL_TIMEOUT_S, VARIABLE, Crash, DemoSettings, JobsAccount, MailAccount
from agentic.local.demo.workers import Workers
from agentic.local.engine import FunctionEngine
from agentic.local.engine.server import bind, serving
from agentic.local.function_server import DEV
from agentic.local.home import Home
from agentic.local.providers.fullenrich import FullEnrichStandIn
from agentic.local.providers.mail import MailServer, MailStore
from agentic.local.providers.stand_in import StandInServer
from agentic.local.worker import WorkerProcess, WorkerSettings
from agentic.runtime.agent.timings import Timings
from agentic.services.mcp.deployment import LaunchFile
from agentic.services.mcp.locating import VARIABLE as MCP_SERVERS
from agentic.services.tools.default_invoker import InvokerSettings
from agentic.services.tools.handlers.crm.importing import ImportReport, enter
from agentic.storage.migrations import migrate
from agentic.storage.scoped_db import scoped_db

HOST = "127.0.0.1"
ENGINE_GRACE_S = 2.0
MAILBOX_FILE = "mailbox.jsonl"
ARMED_FILE = "crash-run"
_RECENT = 100


@dataclass(frozen=True, kw_only=True, slots=True)
class Stage:
    """A running platform with its surroundings.

    Attributes:
        requester: the person who asks for the work.
        approver: another person, who may decide.
        killer: has a process die at a point; ``None`` when nobody is to.
        vendor: finishes work later and reports it.
        pottery: somebody else's tool server.
    """

    platform: Platform
    requester: Person
    approver: Person
    killer: crash.Killer | None
    workers: Workers
    logs: Path
    vendor: Vendor
    pottery: PotteryServer
    organization_id: UUID
    _engine: FunctionEngine | None
    _function: str
    _approver_id: UUID
    _mail: MailAccount
    _database_url: str
    _worker_settings: WorkerSettings
    _worker_environment: dict[str, str]

    async def next_worker(self) -> WorkerProcess:
        """The next worker process, once the function server calls it.

        Raises:
            WorkerFailed: it does not start.
        """
        return await self.workers.begin(
            database_url=self._database_url,
            settings=self._worker_settings,
            logs=self.logs,
            environment=self._worker_environment,
        )

    async def approve_and_die(self, approval_id: str) -> int:
        """Approve in a process that is killed between the commit and the nudge; how it ended, negative for a signal."""
        return await decide_and_die(
            approval_id,
            database_url=self._database_url,
            organization_id=self.organization_id,
            user_id=self._approver_id,
        )

    async def fault(self, run_id: UUID) -> str | None:
        """Why the function that leads the run was given up, as the embedded engine recorded it; ``None`` when it was not.

        Another function server keeps that to itself.
        """
        if self._engine is None:
            return None
        for led in await self._engine.runs(self._function):
            if led.status == "failed" and led.event["data"].get("run_id") == str(run_id):
                message = led.result.get("message") if isinstance(led.result, dict) else led.result
                return str(message).strip().split("\n", 1)[0]
        return None

    async def still_open(self) -> list[UUID]:
        """This folder's runs that are not over, oldest first."""
        recent = await self.platform.runs.page(self.organization_id, limit=_RECENT)
        return [run["id"] for run in reversed(recent.rows) if run["finished_at"] is None]

    async def emails(self, run_id: UUID) -> list[dict[str, Any]]:
        """The emails of a run, as the provider's API lists them."""
        async with httpx.AsyncClient(base_url=self._mail.url, trust_env=False) as http:
            response = await http.get(
                f"/v3/grants/{self._mail.grant}/messages",
                params={"metadata_pair": f"{RUN_ID}:{run_id}"},
                headers={"authorization": f"Bearer {self._mail.key}"},
            )
        data: list[dict[str, Any]] = response.raise_for_status().json()["data"]
        return data


@asynccontextmanager
async def set_stage(
    database_url: str, home: Home, options: DemoOptions, casting: Casting, workers: Workers, screen: Screen
) -> AsyncIterator[Stage]:
    """Everything but the workers, which come by one, until the block ends.

    Raises:
        AgenticError: one of many, each a sentence with its remedy; nothing is left running.
    """
    dying = None if options.crash_at is None else Crash(point=options.crash_at, armed=home.folder / ARMED_FILE)
    async with AsyncExitStack() as open_:
        await require_room(database_url)
        await open_.enter_async_context(only_demo(database_url))
        applied = await migrate(database_url)
        screen.done("Database", f"{len(applied)} migrations applied" if applied else "up to date")
        who = home.identity()
        # Of this folder: on a function server that several demos share, each is an app of its own.
        app_id = f"agentic-demo-{who.organization_id.hex[:12]}"
        async with scoped_db(database_url) as tables:
            await enter(tables.of(who.organization_id), casting.report)
        screen.done("Contacts", _imported(casting.report))

        engine, server_url, environment = None, None, {}
        if casting.named is None:
            engine = FunctionEngine(dsn=database_url)
            await engine.start()
            open_.push_async_callback(functools.partial(engine.stop, grace_s=ENGINE_GRACE_S))
            server_url = engine.url
            environment = {DEV: engine.url}
        screen.done("Functions", casting.named.url if casting.named else f"embedded engine at {server_url}")

        killer = None if dying is None else crash.Killer(dying.point, ArmedByFile(dying.armed))
        if killer is not None:
            open_.callback(killer.spare)
        store = MailStore(path=home.folder / MAILBOX_FILE, on_accepted=killer.accepted if killer else None)
        grant = str(uuid5(who.organization_id, "mailbox"))
        key = secrets.token_urlsafe(24)
        mail_server = await open_.enter_async_context(MailServer(store=store, api_key=key, grant_id=grant))
        mail = MailAccount(url=mail_server.url, key=key, grant=grant)
        screen.done("Mail provider", f"stand-in at {mail.url}; nothing leaves this machine")

        jobs_key = secrets.token_urlsafe(24)
        stand_in = FullEnrichStandIn(jobs_key)
        finds = await open_.enter_async_context(StandInServer(stand_in))
        if options.enrich:
            screen.done("FullEnrich", f"stand-in at {finds.url}")
        pottery = PotteryServer(home, who.organization_id)
        if options.mcp:
            pottery.configure(hold_answers=killer is not None)
            open_.callback(pottery.configure, hold_answers=False)
        if pottery.file.exists():
            environment[MCP_SERVERS] = str(pottery.file)
        listener = bind(HOST, 0)
        open_.callback(listener.close)
        api_url = f"http://{HOST}:{listener.getsockname()[1]}"

        settings = DemoSettings(
            model=casting.model,
            mail=mail,
            vendor_key=options.vendor_key,
            email_timeout_s=crash.EMAIL_TIMEOUT_S if killer else EMAIL_TIMEOUT_S,
            target=casting.target,
            jobs=JobsAccount(url=finds.url, key=jobs_key, callback_url=api_url),
            people=casting.people,
            crash=dying,
        )
        worker_settings = WorkerSettings(
            app_id=app_id,
            timings=crash.TIMINGS if killer else Timings(),
            claim_grace_s=crash.CLAIM_GRACE_S if killer else InvokerSettings().claim_grace_s,
        )
        client = function_client(app_id, is_production=False if server_url else None, server_url=server_url)
        platform = await open_.enter_async_context(
            open_platform(
                demo_app(settings),
                database_url,
                bus=InngestBus(client),
                timings=worker_settings.timings,
                mcp_launches=LaunchFile(pottery.file, missing_ok=True),
            )
        )
        if options.enrich:
            await price_credits(platform.usage, who.organization_id)
        approver_id = uuid5(who.organization_id, "approver")
        await give_at_least(platform.approval_store, who.organization_id, who.user_id, Role.OPERATOR)
        await give_at_least(platform.approval_store, who.organization_id, approver_id, Role.APPROVER)

        secret = home.token_secret()
        await open_.enter_async_context(serving(create_api(api_ports(platform), JwtAuthenticator(secret)), listener))
        screen.done("API", api_url)
        person = functools.partial(Person, url=api_url, secret=secret, organization_id=who.organization_id)
        yield Stage(
            platform=platform,
            requester=await open_.enter_async_context(person(user_id=who.user_id)),
            approver=await open_.enter_async_context(person(user_id=approver_id)),
            killer=killer,
            workers=workers,
            logs=home.folder / "logs",
            vendor=Vendor(stand_in, platform, who.organization_id),
            pottery=pottery,
            organization_id=who.organization_id,
            _engine=engine,
            _function=f"{app_id}-{run_advance.FUNCTION_ID}",
            _approver_id=approver_id,
            _mail=mail,
            _database_url=database_url,
            _worker_settings=worker_settings,
            _worker_environment={**environment, VARIABLE: settings.model_dump_json()},
        )


def _imported(report: ImportReport) -> str:
    found = (
        (report.merged, "duplicates merged"),
        (report.repaired, "cells repaired"),
        (report.missing_email, "without email"),
        (len(report.bad), "skipped"),
    )
    details = ", ".join(f"{count} {what}" for count, what in found if count)
    return f"{len(report.contacts)} people, {len(report.companies)} companies from {report.rows} rows" + (
        f" ({details})" if details else ""
    )
