"""Messages of a run's log to agno's messages and back, and the calls that are still open.

A body is agno's own ``Message.to_dict`` as UTF-8 JSON: opaque to everybody else, complete for every provider class that the
contract tests cover. The system message is never stored; it is passed again with each turn.
"""

import json
from collections.abc import Iterable, Sequence
from typing import Any, cast

from agno.models.message import Message

from agentic.contract.errors import ProgramFault, RunEnded
from agentic.contract.trust import Trust
from agentic.runtime.agent.agno.stop_reasons import STOP_KEY, is_whole
from agentic.runtime.agent.ports import Answer, MessageRole, ProposedCall, RunMessage
from agentic.services.tools.models import FrozenTool, model_tool_name

FORMAT = "agno.message/1"
"""Format of a body; a new number when an old body could no longer be read as it is."""


def dump(message: Message, trust: Trust) -> RunMessage:
    """A message as it is stored."""
    fields = message.to_dict()
    fields.pop("tool_args", None)  # agno's parsed copy: the raw text in the assistant message is the only value (N2)
    text = json.dumps(fields, ensure_ascii=False, allow_nan=False)
    try:
        body = text.encode()
    except UnicodeEncodeError:  # a lone surrogate in the model's words; no request could carry it either
        body = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()
    return RunMessage(id=message.id, role=cast(MessageRole, message.role), body=body, trust=trust)


def load(stored: RunMessage) -> Message:
    """A stored message as agno's.

    Raises:
        RunEnded: ``history_unreadable`` when the body is not a message of this format (ADR 0003).
    """
    try:
        return Message.from_dict(json.loads(stored.body))
    except (ValueError, TypeError, KeyError, AttributeError) as exc:
        raise RunEnded(
            status="failed",
            code="history_unreadable",
            message=f"message {stored.id} of the run cannot be read as {FORMAT}; start the work again in a new run",
        ) from exc


def user(text: str) -> RunMessage:
    """The message that starts a run."""
    return dump(Message(role="user", content=text), Trust.USER)


def quoted(role: MessageRole, text: str, trust: Trust) -> RunMessage:
    """What an earlier run said, or a note of the platform."""
    return dump(Message(role=role, content=text), trust)


def answer(call: ProposedCall, given: Answer) -> RunMessage:
    """The tool message of one call.

    The id follows from the call, so that appending the same answer twice stores one. The tool name stays on the message:
    Gemini links a result by name and position alone, and sends a nameless one as text of the user.
    """
    message = Message(
        id=f"answer-{call.model_call_id}",
        role="tool",
        tool_call_id=call.model_call_id,
        tool_name=call.model_name,
        content=given.text,
    )
    return dump(message, given.trust)


def render(messages: Sequence[Message]) -> list[Message]:
    """The log in the order a provider accepts: each result behind its call, in call order, then what a read attached.

    A pure view; the log itself keeps the order in which things happened.

    Raises:
        ProgramFault: when a call has no answer; no provider takes such a request.
    """
    out: list[Message] = []
    at = 0
    while at < len(messages):
        message = messages[at]
        at += 1
        out.append(message)
        if message.role != "assistant" or not message.tool_calls:
            continue
        end = at
        while end < len(messages) and messages[end].role != "assistant":
            end += 1
        batch = messages[at:end]
        results = {m.tool_call_id: m for m in batch if m.role == "tool"}
        for call in message.tool_calls:
            if call.get("id") not in results:
                raise ProgramFault(
                    f"call {call.get('id')} of message {message.id} has no answer; drain it before the next turn"
                )
            out.append(results[call.get("id")])
        out += [m for m in batch if m.role != "tool"]
        at = end
    return out


def proposed(message: Message, tools: Iterable[FrozenTool]) -> list[ProposedCall]:
    """The calls of an assistant message, in the model's order, with what makes one of them unfit to run."""
    names = {model_tool_name(tool.spec.name): tool.spec.name for tool in tools}
    whole = is_whole((message.provider_data or {}).get(STOP_KEY))
    calls = []
    for ordinal, call in enumerate(message.tool_calls or []):
        function: dict[str, Any] = call.get("function") or {}
        name = function.get("name")
        model_name = name if isinstance(name, str) else ""
        known = names.get(model_name) if call.get("type") == "function" else None
        calls.append(
            ProposedCall(
                ordinal=ordinal,
                model_call_id=call["id"],
                model_name=model_name,
                tool=known if known is not None else model_name,
                arguments_text=function.get("arguments"),
                fault="cut_off" if not whole else "unknown_tool" if known is None else None,
            )
        )
    return calls


def open_calls(messages: Sequence[Message], tools: Iterable[FrozenTool]) -> list[ProposedCall]:
    """The calls of the last assistant message that no tool message answers."""
    last = max((i for i, m in enumerate(messages) if m.role == "assistant"), default=None)
    if last is None:
        return []
    answered = {m.tool_call_id for m in messages[last + 1 :] if m.role == "tool"}
    return [call for call in proposed(messages[last], tools) if call.model_call_id not in answered]
