"""The research tools over their vendors' stand-ins, through the real invoker: one call of a scripted model, and what became of it."""

import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from agentic.local.providers.exa import Exa
from agentic.local.providers.firecrawl import Firecrawl
from agentic.local.providers.hunter import Hunter
from agentic.local.providers.parallel import Parallel
from agentic.local.providers.stand_in import StandIn, StandInServer
from agentic.runtime.agent.script import Turn
from agentic.services.runs.models import RunTree
from agentic.services.tools.declarations import Tool
from agentic.services.tools.handlers.research import ResearchKeys, ResearchOrigins, ResearchPrices, research_tools
from agentic.testing import Call, Calls, Harness, Say, harness
from money import lines, set_price, states

KEYS = ResearchKeys(
    exa="exa-key-of-nobody",
    parallel="parallel-key-of-nobody",
    firecrawl="fc-key-of-nobody",
    hunter="hunter-key-of-nobody",
)
SITE = "https://nordlys.example/"
FIRECRAWL_CREDIT, HUNTER_CREDIT = "0.004", "0.02"


@dataclass(kw_only=True)
class Vendors:
    """The four stand-ins; put in another one before ``served``."""

    exa: Exa = field(default_factory=lambda: Exa(str(KEYS.exa)))
    parallel: Parallel = field(default_factory=lambda: Parallel(str(KEYS.parallel)))
    firecrawl: Firecrawl = field(default_factory=lambda: Firecrawl(str(KEYS.firecrawl)))
    hunter: Hunter = field(default_factory=lambda: Hunter(str(KEYS.hunter)))
    origins: ResearchOrigins = field(default_factory=ResearchOrigins)

    @property
    def all(self) -> dict[str, StandIn]:
        """By the name of their key."""
        return {"exa": self.exa, "parallel": self.parallel, "firecrawl": self.firecrawl, "hunter": self.hunter}

    def tools(self, *, keys: ResearchKeys = KEYS, prices: ResearchPrices | None = None) -> list[Tool]:
        """The tools over them; a busy vendor is asked again at once."""
        return research_tools(keys, origins=self.origins, prices=prices, backoff_s=0)


@asynccontextmanager
async def served(vendors: Vendors) -> AsyncIterator[Vendors]:
    """The stand-ins, answering."""
    async with AsyncExitStack() as stack:
        urls = {}
        for name, vendor in vendors.all.items():
            urls[name] = (await stack.enter_async_context(StandInServer(vendor))).url
        vendors.origins = ResearchOrigins(**urls)
        yield vendors


@dataclass(frozen=True, kw_only=True)
class Told:
    """What became of a run with research calls.

    Attributes:
        texts: what the model read of its calls, in order.
        usage: the lines of its tools.
        holds: how the money held for them stands.
    """

    run_id: UUID
    state: str
    partial_reason: str | None
    error_code: str | None
    texts: list[str]
    usage: list[dict[str, Any]]
    holds: list[str]
    tree: RunTree

    @property
    def data(self) -> Any:
        """What the one call answered, from inside the labelled envelope."""
        [text] = self.texts
        body = json.loads(text)
        assert body["ok"] is True
        return body["external"]["data"]

    @property
    def code(self) -> str:
        """The stable code under which the one call was refused."""
        [text] = self.texts
        return str(json.loads(text.splitlines()[0])["reason_code"])

    @property
    def spans(self) -> list[Any]:
        """The calls in the tree."""
        return [span for span in self.tree.spans if span["kind"] == "tool"]

    @property
    def raised(self) -> set[str | None]:
        """What the calls raised, by name."""
        return {span["attributes"].get("raised") for span in self.spans}


async def told(h: Harness, run_id: UUID) -> Told:
    """Lead the run to its end and look."""
    settled = await h.settle(run_id)
    return Told(
        run_id=run_id,
        state=settled.state,
        partial_reason=settled.partial_reason,
        error_code=settled.error_code,
        texts=[text for role, text in await h.messages(run_id) if role == "tool"],
        usage=await lines(h, run_id),
        holds=await states(h, run_id),
        tree=await h.tree(run_id),
    )


async def research(
    database: str,
    vendors: Vendors,
    tool: str,
    arguments: dict[str, Any],
    *,
    keys: ResearchKeys = KEYS,
    wrote: str | None = None,
) -> Told:
    """One call of one tool in a run of its own, with prices for credits set.

    Args:
        wrote: the address that the user names; ``None`` for the one the call is about.
    """
    script: list[Turn] = [Calls([Call(tool, arguments)]), Say("Done.")]
    async with harness(tools=vendors.tools(keys=keys), script=script, database_url=database) as h:
        await set_price(h, FIRECRAWL_CREDIT, provider="Firecrawl", unit="credit")
        await set_price(h, HUNTER_CREDIT, provider="Hunter", unit="credit")
        return await told(h, await h.start(f"Look at {wrote or arguments.get('url', SITE)} please."))
