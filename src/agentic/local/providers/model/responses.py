"""An answer in the format of the responses API."""

from itertools import zip_longest
from typing import Any

from agentic.local.providers.model.chat import pieces
from agentic.local.providers.model.script import Answer, ModelCall, Usage

_REASONS = {"length": "max_output_tokens", "content_filter": "content_filter"}


def plain(answer: Answer) -> dict[str, Any]:
    """The whole answer as one body."""
    return _response(answer, _status(answer), _items(answer))


def events(answer: Answer) -> list[dict[str, Any] | str]:
    """The answer as the events of a stream."""
    items = _items(answer)
    out: list[dict[str, Any] | str] = [
        {"type": "response.created", "response": _response(answer, "in_progress", [], usage=False)}
    ]
    per_item = [_item_events(item, place, answer.wire.piece_chars) for place, item in enumerate(items)]
    if answer.wire.interleaved:
        out += [event for row in zip_longest(*per_item) for event in row if event is not None]
    else:
        out += [event for item in per_item for event in item]
    if answer.finish is not None:
        status = _status(answer)
        out.append({"type": f"response.{status}", "response": _response(answer, status, items)})
    for number, event in enumerate(out):
        if isinstance(event, dict):
            event["sequence_number"] = number
    return out


def _item_events(item: dict[str, Any], place: int, size: int) -> list[dict[str, Any]]:
    at = {"output_index": place, "item_id": item["id"]}
    if item["type"] == "message":
        deltas = [
            {"type": "response.output_text.delta", **at, "content_index": 0, "delta": piece, "logprobs": []}
            for piece in pieces(item["content"][0]["text"], size)
        ]
        first = {**item, "content": []}
    else:
        deltas = [
            {"type": "response.function_call_arguments.delta", **at, "delta": piece}
            for piece in pieces(item["arguments"], size)
        ]
        first = {**item, "arguments": ""}
    added = {"type": "response.output_item.added", **at, "item": {**first, "status": "in_progress"}}
    return [added, *deltas, {"type": "response.output_item.done", **at, "item": item}]


def _items(answer: Answer) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = []
    if answer.text:
        part = {"type": "output_text", "text": answer.text, "annotations": []}
        items.append({"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [part]})
    return items + [_call_item(call, place) for place, call in enumerate(answer.calls)]


def _call_item(call: ModelCall, place: int) -> dict[str, Any]:
    return {
        "type": "function_call",
        "id": f"fc_{place}_{call.id}",
        "call_id": call.id,
        "name": call.name,
        "arguments": call.arguments,
        "status": "completed",
    }


def _status(answer: Answer) -> str:
    return "incomplete" if answer.finish in _REASONS else "completed"


def _response(answer: Answer, status: str, items: list[dict[str, Any]], *, usage: bool = True) -> dict[str, Any]:
    reason = _REASONS.get(answer.finish or "")
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": 1,
        "model": "local",
        "status": status,
        "error": None,
        "incomplete_details": {"reason": reason} if status == "incomplete" else None,
        "output": items,
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": _usage(answer.usage) if usage else None,
    }


def _usage(usage: Usage | None) -> dict[str, Any] | None:
    if usage is None:
        return None
    return {
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "total_tokens": usage.input_tokens + usage.output_tokens,
        "input_tokens_details": {"cached_tokens": usage.cached_tokens},
        "output_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
    }
