"""The four provider formats the loop is held to: how an answer looks on the wire, and the model object that reads it."""

import base64
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from agno.models.anthropic import Claude
from agno.models.base import Model
from agno.models.google import Gemini
from agno.models.openai import OpenAIChat, OpenAIResponses
from agno_wire import Encoded, Reply


@dataclass(frozen=True, kw_only=True)
class Dialect:
    """One provider class."""

    name: str
    model: Callable[[str], Model]
    """From the endpoint's base URL to the user's model object."""
    stream: Callable[[Reply], Encoded]
    plain: Callable[[Reply], Encoded]
    results: Callable[[dict[str, Any]], list[tuple[str, str]]]
    """Names or ids and texts of the tool results in a request body, in wire order."""
    schema: Callable[[dict[str, Any], str], Any]
    """The parameters of a tool in a request body."""

    def encode(self, stream: bool) -> Callable[[Reply], Encoded]:
        """The encoder of a mode."""
        return self.stream if stream else self.plain


def _sse(events: Sequence[dict[str, Any]], *, named: bool = False, done: bool = False) -> Encoded:
    lines = []
    for event in events:
        if named:
            lines.append(f"event: {event['type']}\n")
        lines.append(f"data: {json.dumps(event)}\n\n")
    if done:
        lines.append("data: [DONE]\n\n")
    return Encoded(content_type="text/event-stream", body="".join(lines).encode())


def _json(body: dict[str, Any]) -> Encoded:
    return Encoded(content_type="application/json", body=json.dumps(body).encode())


_CHAT_USAGE = {
    "prompt_tokens": 100,
    "completion_tokens": 20,
    "total_tokens": 120,
    "cost": 0.0042,
    "prompt_tokens_details": {"cached_tokens": 64},
    "completion_tokens_details": {"reasoning_tokens": 7},
}


def _chat_stop(reply: Reply) -> str | None:
    return {"limit": "length", "missing": None}.get(reply.stop, "tool_calls" if reply.calls else "stop")


def _chat_stream(reply: Reply) -> Encoded:
    head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m"}

    def chunk(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
        return {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}

    events = [chunk({"role": "assistant", "content": reply.text})]
    for i, call in enumerate(reply.calls):
        named = {"index": i, "id": call.id, "type": "function", "function": {"name": call.name, "arguments": ""}}
        events.append(chunk({"tool_calls": [named]}))
        half = len(call.arguments) // 2
        events += [
            chunk({"tool_calls": [{"index": i, "function": {"arguments": piece}}]})
            for piece in (call.arguments[:half], call.arguments[half:])
        ]
    if reply.stop == "missing":
        return _sse(events)
    events.append(chunk({}, _chat_stop(reply)))
    events.append({**head, "choices": [], "usage": _CHAT_USAGE})
    return _sse(events, done=True)


def _chat_plain(reply: Reply) -> Encoded:
    message: dict[str, Any] = {"role": "assistant", "content": reply.text}
    if reply.calls:
        message["tool_calls"] = [
            {"id": c.id, "type": "function", "function": {"name": c.name, "arguments": c.arguments}}
            for c in reply.calls
        ]
    choice = {"index": 0, "message": message, "finish_reason": _chat_stop(reply)}
    head = {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "m"}
    return _json({**head, "choices": [choice], "usage": _CHAT_USAGE})


def _chat_results(body: dict[str, Any]) -> list[tuple[str, str]]:
    return [(m["tool_call_id"], m["content"]) for m in body["messages"] if m["role"] == "tool"]


def _chat_schema(body: dict[str, Any], name: str) -> Any:
    return next(t["function"]["parameters"] for t in body["tools"] if t["function"]["name"] == name)


CHAT = Dialect(
    name="openai-chat",
    model=lambda url: OpenAIChat(id="gpt-4o", api_key="sk-test-0123456789", base_url=f"{url}/v1"),
    stream=_chat_stream,
    plain=_chat_plain,
    results=_chat_results,
    schema=_chat_schema,
)


def _response_items(reply: Reply) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = [
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": base64.b64encode(b"thought").decode()}
    ]
    if reply.text:
        part = {"type": "output_text", "text": reply.text, "annotations": []}
        items.append({"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [part]})
    items += [
        {
            "type": "function_call",
            "id": f"fc_{call.id}",
            "call_id": call.id,
            "name": call.name,
            "arguments": call.arguments,
            "status": "completed",
        }
        for call in reply.calls
    ]
    return items


def _response(reply: Reply, status: str, items: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": 1,
        "model": "gpt-5-mini",
        "status": status,
        "error": None,
        "incomplete_details": {"reason": "max_output_tokens"} if status == "incomplete" else None,
        "output": items,
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": {
            "input_tokens": 100,
            "output_tokens": 20,
            "total_tokens": 120,
            "input_tokens_details": {"cached_tokens": 64},
            "output_tokens_details": {"reasoning_tokens": 7},
        },
    }


def _responses_stream(reply: Reply) -> Encoded:
    items = _response_items(reply)
    events: list[dict[str, Any]] = [{"type": "response.created", "response": _response(reply, "in_progress", [])}]
    for i, item in enumerate(items):
        at = {"output_index": i, "item_id": item["id"]}
        if item["type"] == "function_call":
            events.append({"type": "response.output_item.added", **at, "item": {**item, "arguments": ""}})
            events.append({"type": "response.function_call_arguments.delta", **at, "delta": item["arguments"]})
        else:
            events.append({"type": "response.output_item.added", **at, "item": item})
        if item["type"] == "message":
            events.append({"type": "response.output_text.delta", **at, "content_index": 0, "delta": reply.text})
        events.append({"type": "response.output_item.done", **at, "item": item})
    if reply.stop != "missing":
        status = "incomplete" if reply.stop == "limit" else "completed"
        events.append({"type": f"response.{status}", "response": _response(reply, status, items)})
    for number, event in enumerate(events):
        event["sequence_number"] = number
    return _sse(events, named=True)


def _responses_plain(reply: Reply) -> Encoded:
    return _json(_response(reply, "incomplete" if reply.stop == "limit" else "completed", _response_items(reply)))


def _responses_results(body: dict[str, Any]) -> list[tuple[str, str]]:
    return [(i["call_id"], i["output"]) for i in body["input"] if i.get("type") == "function_call_output"]


def _responses_schema(body: dict[str, Any], name: str) -> Any:
    return next(t["parameters"] for t in body["tools"] if t["name"] == name)


RESPONSES = Dialect(
    name="openai-responses",
    model=lambda url: OpenAIResponses(id="gpt-5-mini", api_key="sk-test-0123456789", base_url=f"{url}/v1"),
    stream=_responses_stream,
    plain=_responses_plain,
    results=_responses_results,
    schema=_responses_schema,
)


def _claude_blocks(reply: Reply) -> list[dict[str, Any]]:
    blocks: list[dict[str, Any]] = [{"type": "thinking", "thinking": "I see.", "signature": "c2ln"}]
    if reply.text:
        blocks.append({"type": "text", "text": reply.text})
    blocks += [
        {"type": "tool_use", "id": f"toolu_{call.id}", "name": call.name, "arguments": call.arguments}
        for call in reply.calls
    ]
    return blocks


def _claude_stop(reply: Reply) -> str:
    return "max_tokens" if reply.stop == "limit" else "tool_use" if reply.calls else "end_turn"


def _claude_message(content: list[dict[str, Any]], stop: str | None) -> dict[str, Any]:
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude-test",
        "content": content,
        "stop_reason": stop,
        "stop_sequence": None,
        "usage": {"input_tokens": 100, "output_tokens": 20, "cache_read_input_tokens": 64},
    }


def _claude_stream(reply: Reply) -> Encoded:
    events: list[dict[str, Any]] = [{"type": "message_start", "message": _claude_message([], None)}]
    start: dict[str, Any]
    for i, block in enumerate(_claude_blocks(reply)):
        if block["type"] == "thinking":
            start = {"type": "thinking", "thinking": "", "signature": ""}
            deltas = [
                {"type": "thinking_delta", "thinking": block["thinking"]},
                {"type": "signature_delta", "signature": block["signature"]},
            ]
        elif block["type"] == "text":
            start = {"type": "text", "text": ""}
            deltas = [{"type": "text_delta", "text": block["text"]}]
        else:
            start = {"type": "tool_use", "id": block["id"], "name": block["name"], "input": {}}
            deltas = [{"type": "input_json_delta", "partial_json": block["arguments"]}]
        events.append({"type": "content_block_start", "index": i, "content_block": start})
        events += [{"type": "content_block_delta", "index": i, "delta": delta} for delta in deltas]
        events.append({"type": "content_block_stop", "index": i})
    if reply.stop != "missing":
        stop = {"stop_reason": _claude_stop(reply), "stop_sequence": None}
        events.append({"type": "message_delta", "delta": stop, "usage": {"output_tokens": 20}})
        events.append({"type": "message_stop"})
    return _sse(events, named=True)


def _claude_plain(reply: Reply) -> Encoded:
    content = []
    for block in _claude_blocks(reply):
        if block["type"] == "tool_use":
            content.append({**{k: block[k] for k in ("type", "id", "name")}, "input": json.loads(block["arguments"])})
        else:
            content.append(block)
    return _json(_claude_message(content, _claude_stop(reply)))


def _claude_results(body: dict[str, Any]) -> list[tuple[str, str]]:
    results = []
    for message in body["messages"]:
        for block in message["content"] if isinstance(message["content"], list) else []:
            if block["type"] == "tool_result":
                text = block["content"] if isinstance(block["content"], str) else block["content"][0]["text"]
                results.append((block["tool_use_id"].removeprefix("toolu_"), text))
    return results


def _claude_schema(body: dict[str, Any], name: str) -> Any:
    return next(t["input_schema"] for t in body["tools"] if t["name"] == name)


CLAUDE = Dialect(
    name="anthropic",
    model=lambda url: Claude(
        id="claude-test",
        api_key="sk-ant-test-0123456789",
        client_params={"base_url": url},
        thinking={"type": "enabled", "budget_tokens": 1024},
        max_tokens=4096,
    ),
    stream=_claude_stream,
    plain=_claude_plain,
    results=_claude_results,
    schema=_claude_schema,
)

_GEMINI_USAGE = {
    "promptTokenCount": 100,
    "candidatesTokenCount": 20,
    "totalTokenCount": 120,
    "cachedContentTokenCount": 64,
    "thoughtsTokenCount": 7,
}


def _gemini_parts(reply: Reply) -> list[dict[str, Any]]:
    parts: list[dict[str, Any]] = []
    if reply.text:
        parts.append({"text": reply.text, "thoughtSignature": base64.b64encode(b"text").decode()})
    for i, call in enumerate(reply.calls):
        part: dict[str, Any] = {"functionCall": {"name": call.name, "args": json.loads(call.arguments)}}
        if i == 0:
            part["thoughtSignature"] = base64.b64encode(b"call").decode()
        parts.append(part)
    return parts


def _gemini_candidate(parts: list[dict[str, Any]], stop: str | None) -> dict[str, Any]:
    candidate: dict[str, Any] = {"index": 0, "content": {"role": "model", "parts": parts}}
    if stop is not None:
        candidate["finishReason"] = stop
    return candidate


def _gemini_stop(reply: Reply) -> str | None:
    return {"limit": "MAX_TOKENS", "missing": None}.get(reply.stop, "STOP")


def _gemini_stream(reply: Reply) -> Encoded:
    parts = _gemini_parts(reply)
    events: list[dict[str, Any]] = [{"candidates": [_gemini_candidate([part], None)]} for part in parts[:-1]]
    events.append({"candidates": [_gemini_candidate(parts[-1:], _gemini_stop(reply))], "usageMetadata": _GEMINI_USAGE})
    return _sse(events)


def _gemini_plain(reply: Reply) -> Encoded:
    return _json(
        {"candidates": [_gemini_candidate(_gemini_parts(reply), _gemini_stop(reply))], "usageMetadata": _GEMINI_USAGE}
    )


def _gemini_results(body: dict[str, Any]) -> list[tuple[str, str]]:
    parts = [part for content in body["contents"] for part in content["parts"]]
    responses = [part["functionResponse"] for part in parts if "functionResponse" in part]
    return [(response["name"], response["response"]["result"]) for response in responses]


def _gemini_schema(body: dict[str, Any], name: str) -> Any:
    for tool in body["tools"]:
        for declared in tool["functionDeclarations"]:
            if declared["name"] == name:
                return declared.get("parametersJsonSchema", declared.get("parameters"))
    raise AssertionError(f"no tool {name}")


GEMINI = Dialect(
    name="gemini",
    model=lambda url: Gemini(
        id="gemini-test", api_key="AIzaSyTest0123456789", client_params={"http_options": {"base_url": url}}
    ),
    stream=_gemini_stream,
    plain=_gemini_plain,
    results=_gemini_results,
    schema=_gemini_schema,
)

ALL = (CHAT, RESPONSES, CLAUDE, GEMINI)
