"""Artifacts over HTTP: a file for the organization it belongs to, and nothing for anybody else."""

from typing import TYPE_CHECKING
from uuid import uuid4

import pytest

from agentic.contract.principal import Role

if TYPE_CHECKING:
    from tests.integration.api.conftest import Stage

PAGE = b"<script>alert('x')</script>"


@pytest.mark.guarantee("B1")
async def test_an_artifact_is_a_file_to_keep_and_no_page_to_show(stage: "Stage") -> None:
    user = await stage.person(Role.APPROVER)
    run, _ = await stage.waiting(user)
    id = await stage.artifact(run, PAGE)
    async with stage.as_(user) as http:
        answer = await http.get(f"/v1/artifacts/{id}")
    assert (answer.status_code, answer.content) == (200, PAGE)
    assert answer.headers["content-type"] == "text/html"
    assert answer.headers["content-disposition"] == f'attachment; filename="{id}"'
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["cache-control"] == "private, no-store"
    assert "sandbox" in answer.headers["content-security-policy"]
    assert answer.headers["x-agentic-trust"] == "external"
    assert answer.headers["x-agentic-complete"] == "true"


@pytest.mark.guarantee("T1")
async def test_somebody_elses_artifact_looks_like_one_that_is_not_there(stage: "Stage") -> None:
    user = await stage.person(Role.APPROVER)
    run, _ = await stage.waiting(user)
    id, none = await stage.artifact(run, PAGE), uuid4()
    elsewhere = uuid4()
    async with stage.as_(await stage.person(Role.ADMIN, elsewhere), elsewhere) as http:
        foreign, missing = await http.get(f"/v1/artifacts/{id}"), await http.get(f"/v1/artifacts/{none}")
    assert foreign.status_code == missing.status_code == 404
    assert foreign.text.replace(str(id), "ID") == missing.text.replace(str(none), "ID")
    async with stage.as_(await stage.person(None)) as http:
        assert (await http.get(f"/v1/artifacts/{id}")).status_code == 403
    async with stage.client() as http:
        assert (await http.get(f"/v1/artifacts/{id}")).status_code == 401
