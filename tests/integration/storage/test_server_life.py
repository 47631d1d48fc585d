"""A server's row beside a dictionary: whatever it shows, whoever approves, in any order, both say the same of every tool (T4, D2)."""

from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from agentic.contract.errors import Conflict, NotFound
from agentic.services.mcp.config import HttpEndpoint
from agentic.services.mcp.records import ServerState
from mcp_rows import NOTES, ServerRows, server_rows, tool

NAMES = ("a", "b", "c")
SHOWN = st.dictionaries(st.sampled_from(NAMES), st.sampled_from(["one", "two"]))
STEP = st.one_of(
    st.tuples(st.just("shows"), SHOWN),
    st.tuples(st.just("shows"), SHOWN),
    st.tuples(st.just("fails"), st.integers(1, 3)),
    st.tuples(st.just("is activated"), st.none()),
    st.tuples(st.just("is approved"), st.none() | st.lists(st.sampled_from(NAMES), min_size=1, unique=True)),
    st.tuples(st.just("is approved unseen"), st.none()),
    st.tuples(st.just("moves"), st.none()),
    st.tuples(st.just("is retired"), st.sampled_from([False, False, False, True])),
)


@dataclass(kw_only=True)
class Expected:
    """What a server and its tools are, by the words of the promise."""

    state: str = "registered"
    offered: dict[str, str] = field(default_factory=dict)
    approved: dict[str, str] = field(default_factory=dict)
    ever: set[str] = field(default_factory=set)
    """Tools that a run may have."""
    failures: int = 0

    @property
    def used(self) -> bool:
        return self.state in ("active", "degraded")

    @property
    def off(self) -> set[str]:
        on = {name for name in self.approved if self.used and name in self.offered}
        return self.ever - on

    def shows(self, tools: dict[str, str]) -> None:
        self.state = {"registered": "verified", "degraded": "active"}.get(self.state, self.state)
        self.offered, self.failures = tools, 0

    def fails(self) -> None:
        self.failures += 1
        if self.state == "active" and self.failures >= 3:
            self.state = "degraded"

    def approves(self, names: list[str] | None, *, activates: bool = False) -> None:
        if names is None:
            self.approved = {}
        self.approved |= {name: self.offered[name] for name in (self.offered if names is None else names)}
        self.ever |= set(self.approved)
        if activates:
            self.state = "active"

    def moves(self) -> None:
        self.state, self.offered, self.failures = "registered", {}, 0


async def step(rows: ServerRows, expected: Expected, what: str, how: Any, number: int) -> None:
    """Do one thing to both; what the row refuses, the words of the promise refuse too."""
    here, store, admin = rows.organization_id, rows.store, rows.admin
    now = (await store.get(here, "notes")).server
    retired = expected.state == "retired"
    seen = now.offered_hash or "c1:0"
    refused = False
    try:
        match what:
            case "shows":
                await rows.observed(*(tool(name, words) for name, words in how.items()))
            case "fails":
                await rows.failed(how)
            case "is activated":
                await store.activate(here, "notes", offered_hash=seen, user_id=admin)
            case "is approved":
                await store.approve(here, "notes", how, offered_hash=seen, user_id=admin)
            case "is approved unseen":
                await store.approve(here, "notes", None, offered_hash="c1:of-another-day", user_id=admin)
            case "moves":
                config = NOTES.model_copy(update={"endpoint": HttpEndpoint(url=f"https://n{number}.example/")})
                await store.reconfigure(here, config, connection_id=None, revision=now.revision, user_id=admin)
            case _ if how:
                assert await store.retire(here, "notes", user_id=admin) is not retired
    except (Conflict, NotFound):
        refused = True
    match what:
        case "shows" if not retired:
            expected.shows(how)
        case "fails":
            for _ in range(0 if retired else how):
                expected.fails()
            assert not refused
            return
        case "is activated" if expected.state == "verified":
            expected.approves(None, activates=True)
        case "is approved" if expected.used and (how is None or set(how) <= expected.offered.keys()):
            expected.approves(how)
        case "moves" if not retired:
            expected.moves()
        case "is retired":
            expected.state = "retired" if how else expected.state
        case _:
            assert refused, (what, how)
            return
    assert not refused, (what, how)


async def compared(rows: ServerRows, expected: Expected) -> None:
    """The row and the dictionary say the same."""
    found = await rows.store.get(rows.organization_id, "notes")
    words = {each.remote_name: each.description for each in found.offered.tools}
    assert (str(found.server.state), found.server.failures) == (expected.state, expected.failures)
    assert words == expected.offered
    assert {name: each.description for name, each in found.approved.items()} == expected.approved
    kept = {name for name, said in expected.approved.items() if expected.offered.get(name) == said}
    assert {each.remote_name for each in found.unchanged} == kept
    assert set(found.withdrawn) == expected.approved.keys() - expected.offered.keys()
    assert await rows.off() == expected.off
    in_use = await rows.store.revisions(rows.organization_id)
    assert in_use == ({"notes": found.server.revision} if expected.used else {})


@pytest.mark.guarantee("T4")
@pytest.mark.guarantee("D2")
async def test_in_any_order_the_row_says_of_every_tool_what_was_promised(database: str) -> None:
    drawn: list[list[tuple[str, Any]]] = []

    @settings(
        max_examples=25,
        deadline=None,
        database=None,
        derandomize=True,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(st.lists(STEP, min_size=4, max_size=14))
    def draw(steps: list[tuple[str, Any]]) -> None:
        drawn.append(steps)

    draw()
    lived: set[str] = set()
    for steps in drawn:
        async with server_rows(database) as rows:
            await rows.store.register(rows.organization_id, NOTES, connection_id=None, user_id=rows.admin)
            expected = Expected()
            for number, (what, how) in enumerate([("shows", {"a": "one"}), ("is activated", None), *steps]):
                await step(rows, expected, what, how, number)
                await compared(rows, expected)
                lived.add(expected.state)
    assert lived == {str(state) for state in ServerState}, "the draw reaches every state"
