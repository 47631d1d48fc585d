"""Runs over HTTP: sessions, bounds and reasons of a start, and listings by what one looks for."""

from typing import TYPE_CHECKING
from uuid import uuid4

import pytest

from agentic.contract.principal import Role

if TYPE_CHECKING:
    from tests.integration.api.conftest import Stage

ASK = {"agent": "scribe", "input": "write to Per"}


async def test_a_start_says_its_conversation_lane_and_bounds(stage: "Stage") -> None:
    async with stage.as_(await stage.person(Role.MEMBER)) as http:
        body = {
            **ASK,
            "request_key": "a",
            "session": "chat 7",
            "lane": "batch",
            "deadline_s": 600,
            "ceilings": {"max_tool_calls": 3, "max_cost": "0.50"},
        }
        run_id = (await http.post("/v1/runs", json=body)).json()["run_id"]
        run = (await http.get(f"/v1/runs/{run_id}")).json()["run"]
        assert (run["session_id"], run["lane"], run["root_run_id"], run["depth"]) == ("chat 7", "batch", run_id, 0)
        assert (run["ceilings"]["max_tool_calls"], run["ceilings"]["max_cost"]) == (3, "0.50")
        assert (await http.post("/v1/runs", json={**body, "session": "chat 8"})).status_code == 409


@pytest.mark.parametrize(
    "wrong",
    [
        {"session": ""},
        {"session": "s" * 201},
        {"session": "a\u0000b"},
        {"lane": "fast"},
        {"deadline_s": 0},
        {"deadline_s": 1e9},
        {"ceilings": {"max_tool_calls": -1}},
        {"parent": str(uuid4())},
    ],
)
async def test_what_no_start_can_be_is_refused(stage: "Stage", wrong: dict[str, object]) -> None:
    async with stage.as_(await stage.person(Role.MEMBER)) as http:
        answer = await http.post("/v1/runs", json={**ASK, "request_key": "a", **wrong})
        assert (answer.status_code, answer.json()["error"]["code"]) == (422, "invalid_request")
        assert (await http.get("/v1/runs")).json() == {"runs": []}


async def test_runs_are_listed_by_what_one_looks_for_and_page_by_page(stage: "Stage") -> None:
    async with stage.as_(await stage.person(Role.MEMBER)) as http:
        made = []
        for number in range(5):
            body = {**ASK, "request_key": f"k{number}", "session": "even" if number % 2 == 0 else "odd"}
            made.append((await http.post("/v1/runs", json=body)).json()["run_id"])
        await http.post(f"/v1/runs/{made[0]}/cancel", json={"reason": "nobody needs it"})
        await stage.lead(made[0])

        async def found(**query: object) -> list[str]:
            answer = await http.get("/v1/runs", params=query)  # type: ignore[arg-type]
            assert answer.status_code == 200, answer.text
            return [run["id"] for run in answer.json()["runs"]]

        assert await found() == made[::-1]
        assert await found(session="odd") == [made[3], made[1]]
        assert await found(state="cancelled") == [made[0]]
        assert set(await found(state=["cancelled", "queued"], session="even")) == {made[0], made[2], made[4]}
        assert await found(root=made[2]) == [made[2]]
        assert await found(lane="batch") == await found(agent="nobody") == []
        cursor, pages = None, []
        for _ in range(3):
            answer = (await http.get("/v1/runs", params={"limit": 2, **({"cursor": cursor} if cursor else {})})).json()
            pages.append([run["id"] for run in answer["runs"]])
            cursor = answer.get("next")
        assert pages == [made[:2:-1], made[2:0:-1], [made[0]]]
        assert cursor is None
        since = (await http.get("/v1/runs", params={"root": made[3]})).json()["runs"][0]["created_at"]
        assert await found(created_after=since) == [made[4], made[3]]
        assert await found(created_before=since) == made[2::-1]
        shown = (await http.get(f"/v1/runs/{made[0]}")).json()
        assert (shown["run"]["cancel_reason"], shown["run"]["state"]) == ("nobody needs it", "cancelled")
        assert [run["id"] for run in shown["family"]] == [made[0]]


@pytest.mark.parametrize(
    "wrong",
    [
        {"state": "lost"},
        {"lane": "fast"},
        {"root": "x"},
        {"created_after": "yesterday"},
        {"created_after": "2026-01-01T00:00:00"},
        {"cursor": "x"},
        {"cursor": "2026-01-01T00:00:00Z_x"},
        {"limit": 0},
    ],
)
async def test_a_listing_that_cannot_be_is_refused(stage: "Stage", wrong: dict[str, str]) -> None:
    async with stage.as_(await stage.person(Role.MEMBER)) as http:
        answer = await http.get("/v1/runs", params=wrong)
        assert (answer.status_code, answer.json()["error"]["code"]) == (422, "invalid_request")


@pytest.mark.parametrize(
    "address", ["/v1/runs?agent=a%00b", "/v1/runs?session=%00", "/v1/runs?cursor=%00", "/v1/approvals/%00"]
)
async def test_an_address_with_a_character_that_postgres_does_not_take_is_refused(stage: "Stage", address: str) -> None:
    async with stage.as_(await stage.person(Role.MEMBER)) as http:
        answer = await http.get(address)
    assert (answer.status_code, answer.json()["error"]["code"]) == (422, "invalid_request")
