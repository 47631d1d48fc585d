"""The API over a real database, with runs that a scripted model leads: what a person's client would meet."""

import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID, uuid4

import httpx
import jwt
import pytest
from pydantic import BaseModel

from agentic.api.app import create_api
from agentic.api.auth import JwtAuthenticator
from agentic.bootstrap import App, Platform, api_ports, open_platform
from agentic.contract.events import Event
from agentic.contract.principal import Role
from agentic.runtime.agent.agno.scripted import ScriptedModel
from agentic.runtime.agent.definition import AgentDefinition
from agentic.runtime.agent.script import Call, Calls, Say
from agentic.services.connections.fixed import FixedConnections
from agentic.services.mcp.catalog import read_catalog
from agentic.services.tools.context import CallContext
from agentic.services.tools.declarations import vendor_tool
from agentic.services.tools.handlers import egress
from agentic.services.tools.handlers.errors import UpstreamUnavailableError
from agentic.storage.server_store import PostgresServerStore
from tests.integration.mcp.stage import declared

HOST = "tools.vendor.test"
"""Of the MCP servers that the deployment lets organizations name."""
SECRET = "a secret that only tests know, long enough to sign with"


class Letter(BaseModel):
    to: str
    text: str


class Posted(BaseModel):
    id: str


@dataclass
class Bus:
    """Takes events, or is down."""

    down: bool = False
    sent: list[Event] = field(default_factory=list)

    async def send(self, events: Sequence[Event]) -> None:
        if self.down:
            raise ConnectionError("nobody listens")
        self.sent += events


@dataclass(kw_only=True)
class Stage:
    """An organization with people, a platform, and the API."""

    platform: Platform
    bus: Bus
    posted: list[str]
    api: Any
    organization: UUID = field(default_factory=uuid4)
    tampers: dict[str, Any] = field(default_factory=dict)

    async def person(self, role: Role | None, organization: UUID | None = None) -> UUID:
        """Somebody with a role; ``None`` for a stranger."""
        user = uuid4()
        if role is not None:
            await self.platform.approval_store.put_member(organization or self.organization, user, role)
        return user

    def token(self, user: UUID, organization: UUID | None = None, **claims: Any) -> str:
        told = {
            "sub": str(user),
            "aud": "authenticated",
            "exp": int(time.time()) + 60,
            "app_metadata": {"organization_id": str(organization or self.organization)},
        }
        return jwt.encode({**told, **claims}, SECRET, algorithm="HS256")

    def as_(self, user: UUID, organization: UUID | None = None) -> AbstractAsyncContextManager[httpx.AsyncClient]:
        """A client that carries this person's token."""
        return self.client(headers={"Authorization": f"Bearer {self.token(user, organization)}"})

    def client(self, **given: Any) -> AbstractAsyncContextManager[httpx.AsyncClient]:
        return httpx.AsyncClient(transport=httpx.ASGITransport(self.api), base_url="http://api.test", **given)

    async def waiting(self, user: UUID, agent: str = "scribe") -> tuple[str, str]:
        """A run that waits for a person: its id and the approval's."""
        async with self.as_(user) as http:
            body = {"agent": agent, "input": "write to Per", "request_key": uuid4().hex}
            run = (await http.post("/v1/runs", json=body)).json()["run_id"]
            await self.lead(run)
            approvals = (await http.get("/v1/approvals", params={"run_id": run})).json()["approvals"]
        assert [approval["status"] for approval in approvals] == ["pending"]
        return run, approvals[0]["id"]

    async def artifact(self, run: str, body: bytes = b"<p>hello</p>") -> str:
        """What a call of the run would have left: a page of a stranger's; its id."""
        id = uuid4()
        await self.platform.database.count(
            "insert into agent.artifacts (id, organization_id, run_id, media_type, trust, sha256, size_bytes, complete, body) "
            "select %(id)s, organization_id, id, 'text/html', 'external', encode(sha256(%(body)s::bytea), 'hex'), "
            "length(%(body)s::bytea), true, %(body)s from agent.runs where id = %(run)s",
            {"id": id, "run": UUID(run), "body": body},
        )
        return str(id)

    async def server(self, organization: UUID | None = None) -> str:
        """An MCP server of the organization's own, which has shown one tool and been activated with it; its id."""
        mine, server_id = organization or self.organization, f"s{uuid4().hex[:12]}"
        raw = {"server_id": server_id, "endpoint": {"type": "http", "url": f"https://{HOST}/mcp"}}
        await self.platform.mcp.add(mine, raw, user_id=None)
        catalog = read_catalog(server_id, [declared("find")])
        store = PostgresServerStore(self.platform.database, {})
        await store.observe(mine, server_id, catalog, resources=False, endpoint_revision=1)
        await self.platform.mcp.activate(mine, server_id, offered_hash=catalog.catalog_hash, user_id=None)
        return server_id

    async def uncertain(self, user: UUID) -> tuple[str, str]:
        """A run whose call came to an unknown end: its id and the call's reference."""
        run, approval = await self.waiting(user)
        self.tampers["post"] = ConnectionResetError("the line went dead")
        async with self.as_(user) as http:
            await http.post(f"/v1/approvals/{approval}/approve")
            await self.lead(run)
            del self.tampers["post"]
            return run, (await http.get("/v1/uncertain")).json()["uncertain"][-1]["ref"]

    async def lead(self, run: str, organization: UUID | None = None) -> str:
        """One segment of the run; where it ended."""
        return (await self.platform.leader.advance(organization or self.organization, UUID(run))).state


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Where names lead to, in place of name servers; a test adds to it. No other name exists."""
    known = {"127.0.0.1": "127.0.0.1"}

    async def addresses(origin: egress.Origin) -> list[str]:
        if origin.host not in known:
            raise UpstreamUnavailableError(f"{origin.host}: no such host")
        return [known[origin.host]]

    monkeypatch.setattr(egress, "addresses", addresses)
    return known


@pytest.fixture
async def stage(database: str, names: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Stage]:
    monkeypatch.setenv("AGENTIC_EGRESS_ALLOW", f"https://{HOST}", prepend=",")  # a test may have named more
    posted: list[str] = []
    faults: dict[str, Exception] = {}

    @vendor_tool(
        "letters.post",
        "Post a letter.",
        side_effects="send",
        repeatable=False,
        connection="post",
        may_repeat_because="a second letter does no harm here",
    )
    async def post(ctx: CallContext, args: Letter) -> Posted:
        posted.append(args.to)
        if "post" in faults:
            raise faults["post"]
        return Posted(id=f"letter-{len(posted)}")

    def model() -> ScriptedModel:
        return ScriptedModel(
            script=[Calls([Call("letters.post", {"to": "per@fjord.example", "text": "hello"})]), Say("done")]
        )

    agents = [AgentDefinition(name="scribe", instructions="Write letters.", model="script", tools=("letters.post",))]
    bus = Bus()
    app = App(tools=[post], agents=agents, models={"script": model}, connections=FixedConnections())
    async with open_platform(app, database, bus=bus) as platform:
        api = create_api(api_ports(platform), JwtAuthenticator(SECRET))
        yield Stage(platform=platform, bus=bus, posted=posted, api=api, tampers=faults)
