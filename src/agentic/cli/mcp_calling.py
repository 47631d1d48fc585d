"""One governed call by hand: the only node of a workflow, so that it is decided, claimed, bounded and told like every other call.

Where this process ends, the call stands in the database: it waits for its decision, or for whoever runs the same key again.
"""

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, Literal
from uuid import UUID

from agentic.api.views import approval_view
from agentic.bootstrap import App, Platform, open_platform, workflows
from agentic.cli.event_bus import LeftToTheSweep, bus_of
from agentic.cli.output import say
from agentic.cli.records import check_schema, home_of
from agentic.cli.vendors import reach_vendors_of
from agentic.contract.errors import Conflict, ProgramFault
from agentic.contract.lanes import Lane
from agentic.contract.principal import Principal, RunCeilings
from agentic.contract.results import ErrorCode, ToolResult
from agentic.contract.trust import Trust
from agentic.local.program import command
from agentic.runtime.workflow.errors import NodeRetry
from agentic.runtime.workflow.flow import Flow
from agentic.runtime.workflow.identity import NodeCall, arguments_text, node_id
from agentic.runtime.workflow.leading import NodeLeader
from agentic.runtime.workflow.phases import Done, Failed, Later, Parked, Partial
from agentic.services.approvals.models import Verdict
from agentic.services.approvals.service import ApprovalService
from agentic.services.mcp.naming import registry_name
from agentic.services.runs.models import RunEnd
from agentic.storage.supabase_object_store import object_store_of

WORKFLOW: Final = "workflow:mcp-call"
NODE: Final = "call"
_TRIES: Final = 3
_AGAIN_S: Final = 1.0
_TOLD_S: Final = 2.0
"""A wait beyond this is told to the person."""
Ask = Callable[[Mapping[str, Any]], Awaitable[bool | None]]
"""Shows an approval, as ``api.views.approval_view`` makes it, and says the person's answer; ``None`` leaves it open."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Wanted:
    """The call."""

    server: str
    tool: str
    """As the server names it, or as it is named here."""
    arguments: Mapping[str, Any]
    request_key: str

    @property
    def name(self) -> str:
        """The platform's name of the tool."""
        prefix = f"mcp.{self.server}."
        return self.tool if self.tool.startswith(prefix) else registry_name(self.server, self.tool)


@dataclass(frozen=True, kw_only=True, slots=True)
class Ended:
    """Where the call stands."""

    run_id: UUID
    """Of the call itself: its decision, its spans, its effect."""
    workflow_run_id: UUID
    """That it belongs to."""
    state: Literal["done", "waiting", "failed"]
    result: ToolResult | None = None
    approval_id: str | None = None
    """The question nobody has answered."""
    code: str | None = None
    message: str | None = None

    def view(self, wanted: Wanted) -> dict[str, Any]:
        """As a JSON object."""
        return {
            "run_id": str(self.run_id),
            "workflow_run_id": str(self.workflow_run_id),
            "tool": wanted.name,
            "state": self.state,
            "request_key": wanted.request_key,
            "approval_id": self.approval_id,
            "code": self.code,
            "message": self.message,
            "result": None if self.result is None else self.result.model_dump(mode="json", exclude={"stop"}),
        }


def call(folder: Path | None, wanted: Wanted, *, organization: UUID | None, user_id: UUID, ask: Ask) -> Ended:
    """Make the call, or go on with the one of the same key, until it is done or waits for a person who is not here.

    Raises:
        ProgramFault: there is no such tool for new runs, or the schema is not this build's.
        Conflict: the request key stands for another call, which is as it was.
        StorageUnavailable: nobody answers at the database.
    """
    # how the call ended is told in a sentence; Python would print the record of it beside that, with places in our code
    logging.getLogger("agentic.services.tools.handling").addHandler(logging.NullHandler())
    home = home_of(folder)
    home.check()
    home.name_mcp_servers()
    with home.database() as url:
        reach_vendors_of(home, url)
        principal = Principal(organization_id=organization or home.identity().organization_id, user_id=user_id)
        return asyncio.run(_open(url, home.folder, wanted, principal, ask, command(folder)))


async def _open(url: str, folder: Path, wanted: Wanted, principal: Principal, ask: Ask, again: str) -> Ended:
    await check_schema(url, again)
    bus = await asyncio.to_thread(bus_of, folder, url)
    async with (
        object_store_of() as bodies,
        open_platform(App(), url, bus=bus or LeftToTheSweep(), artifact_bodies=bodies, max_connections=4) as platform,
    ):
        # nobody but this process waits for the decision, so where nobody listens there is nothing to complain of
        approvals = platform.approvals if bus else ApprovalService(store=platform.approval_store, flush=_not_told)
        return await _Calling(platform, approvals, wanted, principal, ask, again).until_it_stands()


async def _not_told(_ids: Sequence[UUID]) -> None:
    """The sweep of whoever runs the functions finds them (W1)."""


class _Calling:
    def __init__(
        self,
        platform: Platform,
        approvals: ApprovalService,
        wanted: Wanted,
        principal: Principal,
        ask: Ask,
        again: str,
    ) -> None:
        self._platform = platform
        self._approvals = approvals
        self._wanted = wanted
        self._again = again
        self._leader: NodeLeader = workflows(platform).leader
        self._ask = ask
        self._organization_id = principal.organization_id
        self._user_id = principal.user_id
        self._call = NodeCall(
            node=NODE, tool=wanted.name, arguments_text=arguments_text(wanted.arguments), trust=Trust.USER
        )
        self._flow = Flow(
            principal=principal,
            definition=WORKFLOW,
            run_id=wanted.request_key,
            tools=(wanted.name,),
            ceilings=RunCeilings(),
            trust=Trust.USER,
            lane=Lane.INTERACTIVE,
            deadline_s=platform.timings.run_deadline_s,
        )
        self._node = node_id(self._flow.container, NODE)

    async def until_it_stands(self) -> Ended:
        tries = 0
        while True:
            try:
                phase = await self._leader.run(self._flow, self._call)
            except NodeRetry as busy:
                tries += 1
                if tries < _TRIES:
                    say(f"{self._wanted.name}: {busy}; trying again")
                    await asyncio.sleep(_AGAIN_S * 2**tries)
                    continue
                phase = await self._leader.give_up(self._flow, self._call, ErrorCode(str(busy)))
            except ProgramFault as fault:
                server = self._wanted.server
                raise ProgramFault(
                    f"no run may have the tool {self._wanted.tool} of {server} now; '{self._again} mcp tools {server}' says which tools it "
                    f"has and what is approved, '{self._again} mcp list' whether it is active"
                ) from fault
            match phase:
                case Done():
                    return await self._answered(phase.answer())
                case Failed(code="node_reused"):
                    raise Conflict("this request key stands for another call; give each call a key of its own")
                case Failed(code=code, message=message):
                    return await self._failed(code, message)
                case Partial(reason=reason):
                    return await self._failed(reason, "the call was not made: it may not be paid for")
                case Later(due_at=due_at):
                    wait_s = (due_at - datetime.now(UTC)).total_seconds()
                    if wait_s > _TOLD_S:
                        say(f"waiting {wait_s:.0f} s: another process has this call, or had it when it ended")
                    await asyncio.sleep(max(0.05, wait_s))
                case Parked():
                    waits_for = await self._put_to_the_person()
                    if waits_for is not None:
                        return self._ended("waiting", approval_id=waits_for)

    async def _put_to_the_person(self) -> str | None:
        """The question that stays open; ``None`` when there is none any more."""
        for approval in await self._approvals.find(self._organization_id, run_id=self._node, status="pending"):
            verdict = await self._ask(approval_view(approval))
            if verdict is None:
                return str(approval.id)
            assert self._user_id is not None
            await self._approvals.decide(
                self._organization_id,
                approval.id,
                user_id=self._user_id,
                verdict=Verdict.APPROVED if verdict else Verdict.REJECTED,
            )
        return None

    async def _answered(self, result: ToolResult) -> Ended:
        code = None if result.error is None else str(result.error.code)
        await self._end(RunEnd(state="succeeded") if code is None else RunEnd(state="failed", error_code=code))
        return self._ended("done", result=result, code=code)

    async def _failed(self, code: str, message: str) -> Ended:
        await self._end(RunEnd(state="cancelled") if code == "cancelled" else RunEnd(state="failed", error_code=code))
        return self._ended("failed", code=code, message=message)

    def _ended(self, state: Literal["done", "waiting", "failed"], **more: Any) -> Ended:
        return Ended(run_id=self._node, workflow_run_id=self._flow.container, state=state, **more)

    async def _end(self, end: RunEnd) -> None:
        await self._platform.workflow_store.end(self._organization_id, self._flow.container, end)


def read_arguments(text: str) -> dict[str, Any]:
    """The arguments of a call as they are typed.

    Raises:
        ProgramFault: they are no JSON object.
    """
    try:
        read = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ProgramFault(
            f'the arguments are no JSON ({error}); write an object, such as \'{{"words": "glaze"}}\''
        ) from None
    if not isinstance(read, dict):
        raise ProgramFault('the arguments are a JSON object, such as \'{"words": "glaze"}\'')
    return read
