"""The prompts a server lists, for people to look at.

Nothing of them is ever put before a model: they are a stranger's words about what a model should do.
"""

import asyncio
from collections.abc import Mapping
from typing import Any, Final

from agentic.contract.trust import Trust
from agentic.contract.values import Value
from agentic.services.mcp.discovery import DISCOVERY_TIMEOUT_S, paged
from agentic.services.mcp.failures import RemoteFailure, Trouble
from agentic.services.mcp.naming import cut, shown
from agentic.services.mcp.servers import RemoteServer
from agentic.services.tools.telemetry import count_mcp_request

MAX_BYTES: Final = 1_024
MAX_ARGUMENTS: Final = 32
_LIST: Final = "prompts/list"
_METHOD_NOT_FOUND: Final = -32601


class PromptArgument(Value):
    """What a prompt is filled in with."""

    name: str
    """At most 128 visible characters."""
    description: str
    """The first 1,024 visible bytes, marked when there is more; empty when there is none."""
    required: bool


class RemotePrompt(Value):
    """One prompt as its server describes it, cut to what a person can see."""

    name: str
    """At most 128 visible characters, on one line."""
    description: str
    """The first 1,024 visible bytes, marked when there is more; empty when there is none."""
    arguments: tuple[PromptArgument, ...] = ()
    """At most 32."""
    left_out: int = 0
    """How many arguments there are beyond these."""
    trust: Trust = Trust.EXTERNAL


async def prompts(server: RemoteServer) -> tuple[RemotePrompt, ...]:
    """What a server lists, in its order; nothing when it has no prompts. An entry without a name that can be shown is left out.

    Raises:
        RemoteFailure: the server cannot be used, or its list is none or has no end within 30 seconds.
    """
    connection = await server.connection()
    if not connection.greeting.offers("prompts"):
        return ()
    config = server.config

    async def ask(params: Mapping[str, Any]) -> dict[str, Any]:
        outcome = "ok"
        try:
            return await connection.session.request(_LIST, params, timeout_s=config.timeouts.request_s)
        except RemoteFailure as failure:
            outcome = str(failure.trouble)
            raise
        finally:
            count_mcp_request(server=config.server_id, method=_LIST, outcome=outcome)

    limit = asyncio.timeout(DISCOVERY_TIMEOUT_S)
    try:
        async with server.slots.preparing(starts_process=False), limit:
            listed = await paged(ask, key="prompts")
    except TimeoutError:
        if not limit.expired():
            raise
        raise RemoteFailure(Trouble.TIMEOUT, "the list of prompts was not read in time") from None
    except RemoteFailure as failure:
        # some servers announce what they have no list of
        if failure.trouble is Trouble.SERVER_ERROR and failure.code == _METHOD_NOT_FOUND:
            return ()
        raise
    read = (_prompt(each) for each in listed)
    return tuple(each for each in read if each is not None)


def _prompt(entry: object) -> RemotePrompt | None:
    name = _name(entry)
    if not isinstance(entry, Mapping) or not name:
        return None
    said = entry.get("arguments")
    arguments = [each for each in said if _name(each)] if isinstance(said, list) else []
    return RemotePrompt(
        name=name,
        description=_words(entry),
        arguments=tuple(
            PromptArgument(name=_name(each), description=_words(each), required=each.get("required") is True)
            for each in arguments[:MAX_ARGUMENTS]
        ),
        left_out=max(0, len(arguments) - MAX_ARGUMENTS),
    )


def _name(entry: object) -> str:
    said = entry.get("name") if isinstance(entry, Mapping) else None
    return shown(said) if isinstance(said, str) else ""


def _words(entry: Mapping[str, Any]) -> str:
    said = entry.get("description")
    return cut(said, MAX_BYTES) if isinstance(said, str) else ""
