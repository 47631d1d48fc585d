"""Tools for tests of the core: each counts what it did to the world, and does what the test hands it."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from pydantic import BaseModel

from agentic.services.tools.context import CallContext
from agentic.services.tools.declarations import Tool, internal_tool, vendor_tool
from agentic.testing import Harness

Does = Callable[[CallContext, Any], Awaitable[Any]]


class Words(BaseModel):
    """Arguments of every tool here."""

    text: str


class Done(BaseModel):
    """Answer of every tool here, unless the test returns something else."""

    id: str


@dataclass(kw_only=True)
class World:
    """What the tools of one test did."""

    effects: list[tuple[str, str]] = field(default_factory=list)
    keys: list[str | None] = field(default_factory=list)
    contexts: list[CallContext] = field(default_factory=list)

    def _does(self, name: str, does: Does | None) -> Does:
        async def run(ctx: CallContext, args: Words) -> Any:
            self.effects.append((name, args.text))
            self.keys.append(ctx.idempotency_key)
            self.contexts.append(ctx)
            return Done(id=f"{name}-{len(self.effects)}") if does is None else await does(ctx, args)

        return run

    def read(self, name: str = "crm.search", does: Does | None = None, **declared: Any) -> Tool:
        """A low-risk read."""
        run = self._does(name, does)

        @internal_tool(name, f"Reads: {name}.", **declared)
        async def handler(ctx: CallContext, args: Words) -> Done:
            return await run(ctx, args)  # type: ignore[no-any-return]

        return handler

    def write(self, name: str = "notes.save", does: Does | None = None, **declared: Any) -> Tool:
        """A write that runs without asking."""
        run = self._does(name, does)

        @internal_tool(
            name, f"Writes: {name}.", **{"side_effects": "write", "risk": "low", "repeatable": False, **declared}
        )
        async def handler(ctx: CallContext, args: Words) -> Done:
            return await run(ctx, args)  # type: ignore[no-any-return]

        return handler

    def send(self, name: str = "mail.send", does: Does | None = None, **declared: Any) -> Tool:
        """A send with a vendor key: a person is asked."""
        run = self._does(name, does)
        fields = {
            "side_effects": "send",
            "idempotency": "conditional",
            "vendor_key_ttl_s": 3600,
            "connection": "mail",
            "repeatable": False,
            **declared,
        }

        @vendor_tool(name, f"Sends: {name}.", **fields)
        async def handler(ctx: CallContext, args: Words) -> Done:
            return await run(ctx, args)  # type: ignore[no-any-return]

        return handler

    def of(self, name: str) -> list[str]:
        """The words of the effects of one tool, in order."""
        return [text for tool, text in self.effects if tool == name]


async def execute(h: Harness, statement: str, **params: Any) -> int:
    """Change rows behind the platform's back."""
    return await h.platform.database.count(statement, params)


async def rows(h: Harness, statement: str, **params: Any) -> list[dict[str, Any]]:
    """Look at rows."""
    return await h.platform.database.all(statement, params)


async def journal(h: Harness, run_id: UUID) -> list[dict[str, Any]]:
    """The journal rows of a run."""
    return await rows(
        h, "select * from agent.idempotency_keys where run_id = %(run_id)s order by created_at", run_id=run_id
    )
