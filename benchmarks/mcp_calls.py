"""Governed calls of a remote server's tools, beside calls of our own code that do the same."""

from typing import Any, Final

from agentic.services.mcp.config import Classification, HttpEndpoint, Owner, ServerConfig
from agentic.services.tools.models import IdempotencyClass, Risk, SideEffects
from benchmarks.measure import Figures, measure
from benchmarks.stage import Stage, open_stage
from benchmarks.workloads import ALLOWED_WRITE, READ, Step, Workload, other_words

SERVER: Final = "bench"
_CLASSES: Final = {
    "find": Classification(
        side_effects=SideEffects.READ, risk=Risk.LOW, idempotency=IdempotencyClass.READ_ONLY, parallel_safe=True
    ),
    "save": Classification(side_effects=SideEffects.WRITE, risk=Risk.LOW),
}


async def governed(url: str, *, seconds: float) -> list[dict[str, Any]]:
    """What a read and a write of the server at an address send to the database, and how fast they are beside their like.

    Args:
        seconds: how long each is repeated.
    """
    async with open_stage() as stage:
        await _add(stage, url)
        rows = []
        for own, remote in ((READ, _remote("mcp_read", "find")), (ALLOWED_WRITE, _remote("mcp_write", "save"))):
            beside = await measure(stage, own, workers=1, seconds=seconds)
            rows.append(_row(await measure(stage, remote, workers=1, seconds=seconds), beside))
        return rows


async def _add(stage: Stage, url: str) -> None:
    """Add, verify and activate, as an operator does."""
    config = ServerConfig(
        server_id=SERVER, owner=Owner.OPERATOR, endpoint=HttpEndpoint(url=url), per_tool=_CLASSES
    ).model_dump(mode="json")
    servers, here = stage.platform.mcp, stage.principal.organization_id
    await servers.add(here, config, user_id=None)
    seen = (await servers.verify(here, SERVER)).server
    assert seen.offered_hash is not None
    await servers.activate(here, SERVER, offered_hash=seen.offered_hash, user_id=None)


def _remote(name: str, tool: str) -> Workload:
    async def prepare(stage: Stage) -> Step:
        full = f"mcp.{SERVER}.{tool}"
        return other_words(stage, await stage.lead((full,)), full)

    return Workload(name=name, prepare=prepare)


def _row(found: Figures, beside: Figures) -> dict[str, Any]:
    return {
        "workload": found.workload,
        "calls": found.calls,
        "statements": round(found.statements, 3),
        "commits": round(found.commits, 3),
        "of_code_tool": round(found.ops_s / beside.ops_s, 3),
    }
