"""The cap on bodies, whatever a client says about their length."""

from collections.abc import AsyncIterator

import httpx
import pytest
from fastapi import FastAPI, Request

from agentic.api.limits import BODY_BYTES, RUN_BODY_BYTES, BodyLimit


@pytest.fixture
async def http() -> AsyncIterator[httpx.AsyncClient]:
    app = FastAPI()
    app.add_middleware(BodyLimit)

    @app.post("/{path:path}")
    async def length(path: str, request: Request) -> int:
        return len(await request.body())

    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://api.test") as client:
        yield client


async def chunks(size: int) -> AsyncIterator[bytes]:
    for start in range(0, size, 10_000):
        yield b"x" * min(10_000, size - start)


@pytest.mark.parametrize(("path", "cap"), [("/v1/runs", RUN_BODY_BYTES), ("/v1/approvals/1/approve", BODY_BYTES)])
async def test_a_body_passes_whole_up_to_its_cap_and_not_a_byte_beyond(
    http: httpx.AsyncClient, path: str, cap: int
) -> None:
    for sent in (b"x" * cap, chunks(cap)):
        answer = await http.post(path, content=sent)
        assert (answer.status_code, answer.json()) == (200, cap)
    for sent in (b"x" * (cap + 1), chunks(cap + 1)):
        assert (await http.post(path, content=sent)).status_code == 413


async def test_a_client_that_lies_about_the_length_is_counted(http: httpx.AsyncClient) -> None:
    answer = await http.post("/v1/uncertain/1/deny", content=chunks(BODY_BYTES + 1), headers={"Content-Length": "10"})
    assert answer.status_code == 413


async def test_functions_carry_more_than_people(http: httpx.AsyncClient) -> None:
    answer = await http.post("/api/inngest", content=b"x" * (RUN_BODY_BYTES * 3))
    assert answer.json() == RUN_BODY_BYTES * 3
