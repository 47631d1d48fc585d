"""An answer in the format of chat completions."""

from collections.abc import Sequence
from itertools import zip_longest
from typing import Any

from agentic.local.providers.model.script import Answer, ModelCall, Usage

_HEAD = {"id": "chatcmpl-1", "created": 1, "model": "local"}


def plain(answer: Answer) -> dict[str, Any]:
    """The whole answer as one body."""
    message: dict[str, Any] = {"role": "assistant", "content": answer.text or None}
    if answer.calls:
        message["tool_calls"] = [
            {"id": call.id, "type": call.type, "function": {"name": call.name, "arguments": call.arguments}}
            for call in answer.calls
        ]
    choice = {"index": 0, "message": message, "finish_reason": _finish(answer)}
    return {**_HEAD, "object": "chat.completion", "choices": [choice], "usage": _usage(answer.usage)}


def events(answer: Answer) -> list[dict[str, Any] | str]:
    """The answer as the events of a stream; a string is sent as it is."""
    size = answer.wire.piece_chars
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
    deltas += [{"content": piece} for piece in pieces(answer.text, size)]
    per_call = [_call_deltas(call, place, size) for place, call in enumerate(answer.calls)]
    if answer.wire.interleaved:
        deltas += [delta for row in zip_longest(*per_call) for delta in row if delta is not None]
    else:
        deltas += [delta for call in per_call for delta in call]
    usage = _usage(answer.usage)
    during = {"usage": usage} if answer.wire.usage_so_far else {}
    out: list[dict[str, Any] | str] = [_chunk([_choice(delta)], **during) for delta in deltas]
    if answer.finish is None:
        return out
    out.append(_chunk([{**_choice({}), "finish_reason": _finish(answer)}], **during))
    if usage is not None:
        out.append(_chunk([], usage=usage))
    return [*out, "[DONE]"]


def pieces(text: str, size: int) -> list[str]:
    """The text in pieces of this many characters."""
    return [text[at : at + size] for at in range(0, len(text), size)]


def _call_deltas(call: ModelCall, place: int, size: int) -> Sequence[dict[str, Any]]:
    at = {"index": place if call.index is None else call.index}
    named: dict[str, Any] = {**at, "function": {"name": call.name, "arguments": ""}}
    if call.id is not None:
        named["id"] = call.id
    if call.type is not None:
        named["type"] = call.type
    rest = [{**at, "function": {"arguments": piece}} for piece in pieces(call.arguments, size)]
    return [{"tool_calls": [delta]} for delta in (named, *rest)]


def _choice(delta: dict[str, Any]) -> dict[str, Any]:
    return {"index": 0, "delta": delta, "finish_reason": None}


def _chunk(choices: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    return {**_HEAD, "object": "chat.completion.chunk", "choices": choices, **more}


def _finish(answer: Answer) -> str | None:
    return answer.finish if answer.finish != "" else "tool_calls" if answer.calls else "stop"


def _usage(usage: Usage | None) -> dict[str, Any] | None:
    if usage is None:
        return None
    return {
        "prompt_tokens": usage.input_tokens,
        "completion_tokens": usage.output_tokens,
        "total_tokens": usage.input_tokens + usage.output_tokens,
        "prompt_tokens_details": {"cached_tokens": usage.cached_tokens},
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
    }
