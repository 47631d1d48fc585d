"""What a server says it offers, read tool by tool: one that cannot be carried costs itself and nothing else (N3). Pure.

A server has no say in what its tools do; it is asked for names, words and shapes. Everything is hashed as it was written, so that a
change of a word is a change.
"""

from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Any, Final
from uuid import UUID

from pydantic import Field, JsonValue

from agentic.contract.canonical import CanonicalError, digest
from agentic.contract.encoding import encoded_size
from agentic.contract.normal_form import nfc
from agentic.contract.trust import Trust
from agentic.contract.values import Value
from agentic.services.mcp.config import ServerConfig
from agentic.services.mcp.naming import carriable, cut, registry_name, shown, visible
from agentic.services.tools.models import STEP_BUDGET_S, RemoteBinding, SideEffects, ToolSpec, Watermark
from agentic.services.tools.schemas import SchemaRefused, check_schema, provider_schema

MAX_DESCRIPTION_BYTES: Final = 1_024
APPLICATION_ONLY: Final = "agentic/application-only"
"""Key of a tool's `_meta` by which a server keeps it from models. It removes an offer and grants nothing."""
_HASHED: Final = ("name", "title", "description", "annotations", "inputSchema", "outputSchema")
MAX_ANNOTATION_BYTES: Final = 4 * 1024
_MAX_REASON: Final = 1_000


class RemoteTool(Value):
    """One tool as its server declared it, fit to be offered once an operator has approved it."""

    remote_name: str
    """As it goes over the wire."""
    name: str
    description: str
    """As a model reads it: the beginning, without what cannot be seen."""
    input_schema: dict[str, JsonValue]
    output_schema: dict[str, JsonValue] | None = None
    """By which its structured answers are marked, never refused; ``None`` when there is none or it cannot be used."""
    annotations: dict[str, JsonValue] = Field(default_factory=dict)
    """Hints for people, at most 4 KiB of them. No decision reads them."""
    application_only: bool = False
    declaration_hash: str
    """Over name, title, description, annotations, schemas and the mark for applications, as they were written."""


class RejectionCode(StrEnum):
    """Why a tool is not carried, where no word of its server may stand."""

    ENTRY = "entry"
    """It is no object, or not plain JSON."""
    NAME = "name"
    """It has no name that can be shown and sent back."""
    SCHEMA = "schema"
    """Its input schema is missing, or cannot be carried."""
    TASK = "task"
    """It can be called as a task of the protocol only."""


class Rejected(Value):
    """A tool that is not carried, and why."""

    code: RejectionCode
    """Of the first thing that is wrong with it."""
    remote_name: str
    """At most 128 characters, visible ones; empty when there is none to show."""
    reason: str
    """In our words, with places of the schema; at most 1,000 characters, visible ones."""


class Conflict(Value):
    """Tools that would have one name here. None of them is registered, so nothing depends on their order."""

    name: str
    remote_names: tuple[str, ...]


class Catalog(Value):
    """Everything a server offered at one moment."""

    tools: tuple[RemoteTool, ...] = ()
    """By name."""
    rejected: tuple[Rejected, ...] = ()
    conflicts: tuple[Conflict, ...] = ()
    catalog_hash: str
    """Over every declaration that can be read; the order of the server's list does not matter."""

    def tool(self, remote_name: str) -> RemoteTool | None:
        """The tool of this name."""
        return next((tool for tool in self.tools if tool.remote_name == remote_name), None)


def read_catalog(server_id: str, raw: Sequence[object]) -> Catalog:
    """Sort a server's list into what can be carried and what cannot."""
    read: list[RemoteTool] = []
    rejected: list[Rejected] = []
    for entry in raw:
        outcome = _read(server_id, entry)
        if isinstance(outcome, RemoteTool):
            read.append(outcome)
        else:
            rejected.append(outcome)
    by_name: dict[str, list[RemoteTool]] = {}
    for tool in read:
        by_name.setdefault(tool.name, []).append(tool)
    return Catalog(
        tools=tuple(tools[0] for _, tools in sorted(by_name.items()) if len(tools) == 1),
        rejected=tuple(sorted(rejected, key=lambda each: (each.remote_name, each.reason))),
        conflicts=tuple(
            Conflict(name=name, remote_names=tuple(sorted(tool.remote_name for tool in tools)))
            for name, tools in sorted(by_name.items())
            if len(tools) > 1
        ),
        catalog_hash=_hash(read, rejected),
    )


def catalog_of(tools: Sequence[RemoteTool]) -> Catalog:
    """A catalog of these tools and nothing else, such as those that were approved."""
    return Catalog(tools=tuple(sorted(tools, key=lambda tool: tool.name)), catalog_hash=_hash(tools, ()))


def spec_of(config: ServerConfig, tool: RemoteTool, *, connection_id: UUID) -> ToolSpec:
    """The spec of a remote tool: words and shapes of the server, everything that decides of the operator (T4).

    Any change of the declaration is another contract, also one that no model reads: a run is called ``tool_changed`` then.
    """
    said = config.classified(tool.remote_name)
    effect = said.side_effects in (SideEffects.WRITE, SideEffects.SEND)
    return ToolSpec(
        name=tool.name,
        description=tool.description,
        input_schema=tool.input_schema,
        output_schema={},
        kind="mcp",
        binding=RemoteBinding(
            connection_id=connection_id, remote_name=tool.remote_name, declaration_hash=tool.declaration_hash
        ),
        side_effects=said.side_effects,
        idempotency=said.idempotency,
        risk=said.risk,
        output_trust=Trust.EXTERNAL,
        source="mcp",
        timeout_s=min(config.timeouts.request_s, STEP_BUDGET_S),
        repeatable=False if effect else None,
        watermark=Watermark.AT_TRANSPORT if effect else Watermark.AT_CLAIM,
        max_output_bytes=config.max_output_bytes,
        parallel_safe=said.parallel_safe,
    )


def _hash(tools: Sequence[RemoteTool], rejected: Sequence[Rejected]) -> str:
    hashed: list[JsonValue] = [
        list(each) for each in sorted((tool.remote_name, tool.declaration_hash) for tool in tools)
    ]
    refused: list[JsonValue] = [list(each) for each in sorted((each.remote_name, each.reason) for each in rejected)]
    return digest(nfc({"tools": hashed, "rejected": refused}))


def _read(server_id: str, entry: object) -> RemoteTool | Rejected:
    if not isinstance(entry, Mapping):
        return Rejected(code=RejectionCode.ENTRY, remote_name="", reason="the entry is no object")
    remote_name = entry.get("name")
    if not isinstance(remote_name, str) or not carriable(remote_name):
        return Rejected(
            remote_name=shown(remote_name) if isinstance(remote_name, str) else "",
            code=RejectionCode.NAME,
            reason="a name is text of 1 to 128 characters without control characters",
        )
    faults = list(_faults(entry))
    try:
        marked: dict[str, Any] = {"_meta": {APPLICATION_ONLY: True}} if _application_only(entry) else {}
        declaration_hash = digest(nfc({key: entry[key] for key in _HASHED if key in entry} | marked))
    except (CanonicalError, RecursionError):
        faults.append((RejectionCode.ENTRY, "the declaration is not plain JSON"))
        declaration_hash = ""
    if faults:
        # places of the schema are the server's text, and what cannot be hashed there would cost all the other tools
        reason = visible("; ".join(text for _, text in faults))[:_MAX_REASON]
        return Rejected(code=faults[0][0], remote_name=remote_name, reason=reason)
    annotations, output = entry.get("annotations"), entry.get("outputSchema")
    return RemoteTool(
        remote_name=remote_name,
        name=registry_name(server_id, remote_name),
        description=_description(entry),
        input_schema=dict(entry["inputSchema"]),
        output_schema=dict(output) if isinstance(output, Mapping) and _usable(output) else None,
        annotations=_hints(annotations),
        application_only=_application_only(entry),
        declaration_hash=declaration_hash,
    )


def _faults(entry: Mapping[str, Any]) -> Iterator[tuple[RejectionCode, str]]:
    schema = entry.get("inputSchema")
    if not isinstance(schema, Mapping):
        yield (
            RejectionCode.SCHEMA,
            "it declares no input schema" if schema is None else "its input schema is no object",
        )
    else:
        try:
            check_schema(schema)
            provider_schema(schema)
        except SchemaRefused as refused:
            yield RejectionCode.SCHEMA, f"the input schema is refused: {refused}"
    execution = entry.get("execution")
    if isinstance(execution, Mapping) and execution.get("taskSupport") == "required":
        yield RejectionCode.TASK, "it can be called as a task of the protocol only, which is not supported"


def _application_only(entry: Mapping[str, Any]) -> bool:
    meta = entry.get("_meta")
    return isinstance(meta, Mapping) and meta.get(APPLICATION_ONLY) is True


def _hints(annotations: object) -> dict[str, JsonValue]:
    if not isinstance(annotations, dict) or encoded_size(annotations) > MAX_ANNOTATION_BYTES:
        return {}
    return annotations


def _usable(schema: Mapping[str, Any]) -> bool:
    try:
        check_schema(schema)
    except SchemaRefused:
        return False
    return True


def _description(entry: Mapping[str, Any]) -> str:
    """The first of its words that says anything, as a model may read it."""
    for key in ("description", "title", "name"):
        said = entry.get(key)
        if isinstance(said, str) and (words := cut(said, MAX_DESCRIPTION_BYTES)):
            return words
    return "A tool that its server does not describe."
