"""Whole runs over a real wire: the framework's own OpenAI classes, the local model provider, the real invoker and database."""

import json
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

from agno.models.base import Model
from agno.models.openai import OpenAIChat, OpenAIResponses

from agentic.local.providers.model import Answer, ModelCall, ModelServer, Reply, Request
from agentic.runtime.agent.timings import Timings
from agentic.services.tools.declarations import Tool
from agentic.testing import Harness, harness

KEY = "sk-wire-0123456789abcdef"
"""What the model objects are given; no error, row or log may hold it."""


PATIENT = Timings(lease_s=20, renew_s=5, model_retry_s=0.05, fault_retry_s=0.05)
"""A lease that a slow machine does not lose in the middle of an answer, which a script gives only once."""


def chat(url: str) -> Model:
    """Chat completions."""
    return OpenAIChat(id="gpt-4o", api_key=KEY, base_url=url)


def responses(url: str) -> Model:
    """The responses API."""
    return OpenAIResponses(id="gpt-4o", api_key=KEY, base_url=url)


FORMATS: dict[str, Callable[[str], Model]] = {"chat": chat, "responses": responses}


@asynccontextmanager
async def wired(
    database: str, *replies: Reply, tools: Sequence[Tool], model: Callable[[str], Model] = chat, **settings: Any
) -> AsyncIterator[tuple[Harness, ModelServer]]:
    """A deployment whose model answers these replies over HTTP."""
    settings.setdefault("timings", PATIENT)
    async with (
        ModelServer(*replies) as provider,
        harness(tools=tools, script=lambda: model(provider.url), database_url=database, **settings) as h,
    ):
        yield h, provider


def call(name: str, text: str, *, id: str | None = "call_1") -> ModelCall:
    """A call of one of the tools of ``core_world``, under its model-facing name."""
    return ModelCall(name=name.replace(".", "_"), arguments=json.dumps({"text": text}, ensure_ascii=False), id=id)


def calls(*listed: ModelCall, **more: Any) -> Answer:
    """An answer of calls."""
    return Answer(calls=listed, **more)


def answers(request: Request) -> list[dict[str, Any]]:
    """The assistant messages a chat request replays."""
    return [message for message in request.messages if message["role"] == "assistant"]


def results(request: Request) -> list[tuple[str, str]]:
    """Call id and text of the results a chat request carries, in order."""
    return [(message["tool_call_id"], message["content"]) for message in request.messages if message["role"] == "tool"]


def results_of(request: Request) -> list[str]:
    """Call ids of the results a request of either format carries, in order."""
    return [m.get("tool_call_id") or m["call_id"] for m in request.messages if "tool_call_id" in m or "output" in m]
