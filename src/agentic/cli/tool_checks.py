"""What ``agentic tools validate`` finds: everything that would keep an app from opening or an agent from starting, without a database."""

import asyncio
from collections.abc import Iterator, Sequence
from typing import Any
from uuid import UUID

from agentic.bootstrap import App
from agentic.cli.app_path import app_at
from agentic.contract.errors import ProgramFault
from agentic.runtime.agent.publication import publication_faults
from agentic.services.policy.packaged_facts import with_packaged
from agentic.services.tools.context import CallContext
from agentic.services.tools.domains import belongs_to_organization
from agentic.services.tools.registry import registration_faults
from agentic.services.tools.schemas import unenforced_formats
from agentic.services.tools.targets import executable


def check_app(path: str) -> dict[str, Any]:
    """The faults of an app's tools and agents, all of them, and what a person should know besides.

    Args:
        path: import path of the app.

    Raises:
        ProgramFault: there is no app at the path, or importing it failed.
    """

    async def check() -> dict[str, Any]:
        async with app_at(path) as app:
            return {
                "app": path,
                "tools": [tool.spec.name for tool in app.declared_tools()],
                "agents": [definition.name for definition in app.agents],
                "faults": [*_tool_faults(app), *_agent_faults(app)],
                "notes": list(_notes(app)),
            }

    return asyncio.run(check())


def _tool_faults(app: App) -> list[str]:
    try:
        names = with_packaged(app.facts, words=_no_words, written_to=_nobody).names
    except ProgramFault as fault:
        return [str(fault), *registration_faults(app.declared_tools(), facts=[fact.name for fact in app.facts])]
    return registration_faults(app.declared_tools(), facts=names)


def _agent_faults(app: App) -> Iterator[str]:
    specs = {tool.spec.name: tool.spec for tool in app.declared_tools()}
    for definition in app.agents:
        yield from publication_faults(definition, specs.get)
        for name in dict.fromkeys(definition.tools):
            if name not in specs and not belongs_to_organization(name):
                yield f"agent {definition.name} names {name}, which is no tool of this app"


def _notes(app: App) -> Iterator[str]:
    for tool in app.declared_tools():
        spec = tool.spec
        for which, schema in (("input", spec.input_schema), ("output", spec.output_schema)):
            for found in unenforced_formats(schema):
                where, _, name = found.rpartition(": ")
                yield f"{spec.name}: the format {name!r} of the {which} schema is not enforced ({where})"
        if not executable(spec):
            yield f"{spec.name}: nothing here runs the target {spec.target!r}; no agent is shown the tool"


async def _no_words(_ctx: CallContext) -> list[str]:
    """No run, so nothing was written in it."""
    return []


async def _nobody(_organization_id: UUID, _addresses: Sequence[str]) -> list[str]:
    """No database, so nobody was written to."""
    return []
