"""Every method behind the API, found by itself: asked by another organization it answers as for what is not there, and changes nothing."""

import inspect
import typing
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID, uuid4

import pytest
from psycopg import sql

from agentic.api.ports import ApiPorts
from agentic.bootstrap import api_ports
from agentic.contract.errors import AgenticError
from agentic.contract.principal import Principal, Role
from agentic.services.approvals.models import Verdict
from agentic.services.mcp.config import Classification
from agentic.services.runs.models import Append, Lease, RunEnd, RunQuery
from agentic.services.tools.models import Risk
from agentic.services.tools.records import JobWait
from tests.integration.api.conftest import HOST

if TYPE_CHECKING:
    from tests.integration.api.conftest import Stage

OF_NO_ORGANIZATION: Final = {
    "run_store.contracts": "what a tool promises, under its digest: who has the digest had the contract",
    "run_store.ensure_partitions": "upkeep of the schema",
    "run_store.nudge_due": "a sweep over all organizations, told nobody",
    "approvals.expire": "a sweep over all organizations, told nobody",
    "journal.sweep": "a sweep over all organizations, told nobody",
    "journal.sweep_holds": "a sweep over all organizations, told nobody",
    "artifacts.sweep": "a sweep over all organizations, told nobody",
    "mcp.probe_due": "a sweep over all organizations, told how many",
    "mcp.started_for_somebody": "of the deployment: whether anybody still starts a command of its file; no route asks",
    "webhooks.knows": "names of providers, of the deployment",
    "webhooks.receive": "believes a provider's signature; the job's row says whose it is",
    "account_events.challenge": "an address of the deployment's, asked for by a provider",
    "account_events.knows": "names of providers, of the deployment",
    "account_events.receive": "believes a provider's signature; the connections of the account say whose it is",
    "webhooks.take": "what a provider surely said; the job's row says whose it is",
}
OF_A_PRINCIPAL: Final = {"runs.start", "run_store.start"}
"""They make a run for the organization of whoever asks; what they may name of another is a parent, tried apart."""
MAKES: Final = {"mcp.add"}
"""Makes a server for the organization of whoever asks; what it may name of another is a connection, tried apart."""


@dataclass(frozen=True, kw_only=True)
class Method:
    """One method of a port, bound."""

    name: str
    call: Callable[..., Any]

    @property
    def parameters(self) -> Mapping[str, inspect.Parameter]:
        return inspect.signature(self.call).parameters


def methods(ports: ApiPorts) -> list[Method]:
    """All that the ports' declared types offer, on what really stands behind them."""
    found = []
    for field, declared in typing.get_type_hints(ApiPorts).items():
        if inspect.isclass(declared):
            behind = getattr(ports, field)
            for name, _ in inspect.getmembers(declared, inspect.isfunction):
                if not name.startswith("_"):
                    found.append(Method(name=f"{field}.{name}", call=getattr(behind, name)))
    return found


@dataclass(frozen=True, kw_only=True)
class Things:
    """One of everything a method can name; replaced by what is not there, or asked for by others."""

    organization_id: UUID
    user_id: UUID
    run_id: UUID
    approval_id: UUID
    artifact_id: UUID
    ref: str
    session_id: str
    request_key: str
    request_digest: str
    lease: Lease
    format: str
    server_id: str
    offered_hash: str

    def arguments(self, method: Method) -> dict[str, Any]:
        """What the method must be given; a parameter of a new name is to be made above."""
        given: dict[str, Any] = {
            **{name: getattr(self, name) for name in self.__dataclass_fields__},
            "lease": replace(self.lease, organization_id=self.organization_id),
            "append": Append(format=self.format),
            "end": RunEnd(state="succeeded", answer="done"),
            "raw": {"server_id": self.server_id, "endpoint": {"type": "http", "url": f"https://{HOST}/other"}},
            "revision": 3,
            "said": Classification(risk=Risk.MEDIUM),
            "remote_name": "find",
            "remote_names": None,
            "waits": JobWait(job_id=uuid4(), within_s=60),
            "questions": [],
            "query": RunQuery(),
            "verdict": Verdict.APPROVED,
            "happened": True,
            "evidence": "seen it myself",
            "orderly": True,
            "after": 0,
            "limit": 100,
            "lease_s": 60.0,
            "expires_s": 60.0,
        }
        required = [name for name, known in method.parameters.items() if known.default is inspect.Parameter.empty]
        return {name: given[name] for name in [*required, *({"user_id"} & method.parameters.keys())]}


async def things(stage: "Stage", user: UUID) -> Things:
    """Of the stage's own organization."""
    _, ref = await stage.uncertain(user)
    waiting, approval = await stage.waiting(user)
    ask = {"agent": "scribe", "input": "write to Per", "request_key": uuid4().hex, "session": "letters"}
    async with stage.as_(user) as http:
        run = (await http.post("/v1/runs", json=ask)).json()["run_id"]
        said = (await http.post("/v1/runs", json={**ask, "request_key": uuid4().hex})).json()["run_id"]
        await stage.lead(said)
        [asked] = (await http.get("/v1/approvals", params={"run_id": said})).json()["approvals"]
        await http.post(f"/v1/approvals/{asked['id']}/approve")
        assert await stage.lead(said) == "succeeded"  # the session has something that was said
        led, given = await stage.waiting(user)
        await http.post(f"/v1/approvals/{given}/approve")  # what it proposed is to be done
    taken = await stage.platform.run_store.take(stage.organization, UUID(led), lease_s=600)
    assert taken is not None
    rows = await stage.platform.database.all(
        "select request_digest from agent.runs where id = %(id)s", {"id": UUID(run)}
    )
    return Things(
        organization_id=stage.organization,
        user_id=user,
        run_id=UUID(run),
        approval_id=UUID(approval),
        artifact_id=UUID(await stage.artifact(waiting)),
        ref=ref,
        session_id="letters",
        request_key=ask["request_key"],
        request_digest=rows[0]["request_digest"],
        lease=taken.lease,
        format=stage.platform.loop.format,
        server_id=(server := await stage.server()),
        offered_hash=(await stage.platform.mcp.diff(stage.organization, server)).new_hash,
    )


def missing(like: Things) -> Things:
    """As those, and nothing of it is there."""
    return replace(
        like,
        run_id=uuid4(),
        approval_id=uuid4(),
        artifact_id=uuid4(),
        ref=uuid4().hex[:16],
        session_id=uuid4().hex,
        request_key=uuid4().hex,
        lease=replace(like.lease, run_id=uuid4()),
        server_id=f"s{uuid4().hex[:12]}",
    )


async def outcome(method: Method, given: Things) -> str:
    """What came of a call, its ids replaced by their names."""
    try:
        answer = method.call(**given.arguments(method))
        told = repr([each async for each in answer] if isinstance(answer, AsyncIterator) else await answer)
    except AgenticError as refused:
        told = f"{type(refused).__name__}: {refused}"
    for name in ("run_id", "approval_id", "artifact_id", "ref", "session_id", "request_key", "server_id"):
        told = told.replace(str(getattr(given, name)), name)
    return told.replace(str(given.lease.run_id), "led")


async def rows_of(stage: "Stage", organization: UUID) -> dict[str, str | None]:
    """A digest of all rows of an organization, by table."""
    database = stage.platform.database
    tables = await database.all(
        "select c.table_name as name from information_schema.columns c "
        "where c.table_schema = 'agent' and c.column_name = 'organization_id' order by 1",
        {},
    )
    found = {}
    async with database.pool.connection() as connection:
        for table in tables:
            digest = sql.SQL(
                "select md5(string_agg(t::text, '|' order by t::text)) as md5 from agent.{} t where organization_id = %s"
            ).format(sql.Identifier(table["name"]))
            row = await (await connection.execute(digest, [organization])).fetchone()
            assert row is not None
            found[table["name"]] = row["md5"]
    return found


def test_every_method_names_an_organization_or_stands_on_a_list_with_its_reason(stage: "Stage") -> None:
    without = {
        method.name
        for method in methods(api_ports(stage.platform))
        if not {"organization_id", "lease"} & method.parameters.keys()
    }
    assert without == set(OF_NO_ORGANIZATION) | OF_A_PRINCIPAL


@pytest.mark.guarantee("T1")
async def test_no_method_gives_or_changes_anything_of_another_organization(stage: "Stage") -> None:
    ours = await things(stage, await stage.person(Role.ADMIN))
    elsewhere = uuid4()
    stranger = await stage.person(Role.ADMIN, elsewhere)
    before = await rows_of(stage, stage.organization)
    assert sum(digest is not None for digest in before.values()) > 10

    scoped = [
        method
        for method in methods(api_ports(stage.platform))
        if method.name not in {*OF_NO_ORGANIZATION, *OF_A_PRINCIPAL, *MAKES}
    ]
    assert len(scoped) > 20
    for user in (ours.user_id, stranger):  # also where the person is known in both
        foreign = replace(ours, organization_id=elsewhere, user_id=user)
        told = {method.name: await outcome(method, foreign) for method in scoped}
        nothing = {method.name: await outcome(method, missing(foreign)) for method in scoped}
        assert told == nothing
        assert await rows_of(stage, stage.organization) == before

    for method in scoped:  # and each has something to give or to change for those whose it is
        at_home = await things(stage, await stage.person(Role.ADMIN))
        assert await outcome(method, at_home) != nothing[method.name], method.name


@pytest.mark.guarantee("T1")
async def test_a_run_of_another_organization_is_nobodys_parent(stage: "Stage") -> None:
    ours = await things(stage, await stage.person(Role.ADMIN))
    elsewhere = uuid4()
    principal = Principal(organization_id=elsewhere, user_id=await stage.person(Role.ADMIN, elsewhere))
    before = await rows_of(stage, stage.organization)
    answers = set()
    for parent in (ours.run_id, uuid4()):
        with pytest.raises(AgenticError) as refused:
            await stage.platform.runs.start(
                "scribe", "hello", principal=principal, request_key=uuid4().hex, parent=parent
            )
        answers.add((type(refused.value), str(refused.value).replace(str(parent), "ID")))
    assert len(answers) == 1
    assert await rows_of(stage, stage.organization) == before
