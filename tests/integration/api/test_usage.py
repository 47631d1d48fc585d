"""What a run used, over the API."""

from typing import TYPE_CHECKING
from uuid import uuid4

import pytest

from agentic.contract.principal import Role

if TYPE_CHECKING:
    from tests.integration.api.conftest import Stage


async def test_a_member_reads_what_a_run_used_and_money_is_a_decimal_string(stage: "Stage") -> None:
    user = await stage.person(Role.MEMBER)
    run, _ = await stage.waiting(user)
    async with stage.as_(user) as http:
        answer = await http.get(f"/v1/runs/{run}/usage", params={"limit": 1})
        assert answer.status_code == 200
        told = answer.json()
        assert (await http.get(f"/v1/runs/{run}/usage", params={"limit": 0})).status_code == 422
    assert (told["run_id"], told["spent"], told["held"], told["unpriced"]) == (run, "0", "0", 1)
    assert [(line["kind"], line["quantity"], line["cost"]) for line in told["lines"]] == [("model", "120", None)]


@pytest.mark.guarantee("T1")
async def test_usage_of_a_foreign_run_looks_like_that_of_a_missing_one(stage: "Stage") -> None:
    run, _ = await stage.waiting(await stage.person(Role.MEMBER))
    elsewhere, nothing = uuid4(), str(uuid4())
    async with stage.as_(await stage.person(Role.ADMIN, elsewhere), elsewhere) as http:
        foreign, missing = [await http.get(f"/v1/runs/{one}/usage") for one in (run, nothing)]
    assert foreign.status_code == missing.status_code == 404
    assert foreign.text.replace(run, "ID") == missing.text.replace(nothing, "ID")
