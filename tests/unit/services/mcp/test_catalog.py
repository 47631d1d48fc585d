"""A server's list, tool by tool: a bad one costs itself, nothing it claims classifies it, and every change of a word is seen."""

import copy
from typing import Any
from uuid import uuid4

import pytest

from agentic.contract.trust import Trust
from agentic.services.mcp.catalog import APPLICATION_ONLY, read_catalog, spec_of
from agentic.services.mcp.config import Classification, HttpEndpoint, ServerConfig, Timeouts
from agentic.services.mcp.drift import MAX_LINES, drift
from agentic.services.tools.dynamic import admit
from agentic.services.tools.models import IdempotencyClass, RemoteBinding, Risk, SideEffects, Watermark

SCHEMA = {"type": "object", "properties": {"q": {"type": "string"}}}


def entry(name: Any = "search", **more: Any) -> dict[str, Any]:
    return {"name": name, "description": "Finds notes.", "inputSchema": SCHEMA, **more}


def nested(depth: int) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "object"}
    for _ in range(depth):
        schema = {"type": "object", "properties": {"x": schema}}
    return schema


@pytest.mark.guarantee("N3")
@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        ("no object", "the entry is no object"),
        ({"name": "x"}, "declares no input schema"),
        (entry("x", inputSchema=True), "is no object"),
        (entry("x", inputSchema={"type": "array"}), "admits no object"),
        (entry("x", inputSchema={"type": "object", "properties": []}), "refused"),
        (
            entry("x", inputSchema={"type": "object", "properties": {"a": {"$ref": "https://evil.example/s"}}}),
            "refused",
        ),
        (entry("x", inputSchema={"type": "object", "properties": {"a": {"$ref": "#/$defs/none"}}}), "#/properties/a"),
        (entry("x", inputSchema={"type": "object", "properties": {"\0b": {"$ref": "#/$defs/none"}}}), "#/properties/b"),
        (entry("x", inputSchema={"type": "object", "properties": {"\ud800": {"$ref": "#/$defs/none"}}}), "refused"),
        (entry("x", inputSchema={"type": "object", "properties": {"b" * 9_000: {"$ref": "#/$defs/none"}}}), "refused"),
        (entry("x", inputSchema={"$ref": "#"}), "refused"),
        (entry("x", inputSchema=nested(20)), "16 deep"),
        (entry("x", inputSchema={"type": "object", "description": "x" * 40_000}), "bytes"),
        (entry("x", inputSchema={"type": "object", "properties": {"a": {"pattern": "(?=x)"}}}), "refused"),
        (entry("x", annotations={"a": float("nan")}), "not plain JSON"),
        (entry("x", execution={"taskSupport": "required"}), "as a task"),
        (entry(None), "a name is text"),
        (entry(7), "a name is text"),
        (entry("a\nb"), "a name is text"),
    ],
)
def test_a_tool_that_cannot_be_carried_costs_itself_and_says_why(bad: Any, reason: str) -> None:
    catalog = read_catalog("notes", [entry("good"), bad])
    assert [tool.remote_name for tool in catalog.tools] == ["good"]
    assert len(catalog.rejected) == 1 and reason in catalog.rejected[0].reason
    assert len(catalog.rejected[0].reason) <= 1_000


def test_odd_words_and_hints_are_tolerated() -> None:
    odd = [
        entry("silent", description=None),
        entry("titled", description=7, title="Reads a page."),
        entry("hinted", annotations={"title": 7}),
        entry("listed", annotations=["x"]),
        entry("noisy", annotations={"x": "y" * 5_000}),
    ]
    catalog = read_catalog("notes", odd)
    assert catalog.rejected == () and len(catalog.tools) == 5
    by_name = {tool.remote_name: tool for tool in catalog.tools}
    assert by_name["silent"].description == "silent" and by_name["titled"].description == "Reads a page."
    assert by_name["listed"].annotations == by_name["noisy"].annotations == {}


@pytest.mark.parametrize("plane", [0xE0000, 0xE0100], ids=["tags", "selectors"])
def test_a_description_is_cut_and_freed_of_what_no_person_sees(plane: int) -> None:
    hidden = "".join(chr(plane + ord(character)) for character in "obey")
    (tool,) = read_catalog("notes", [entry(description=f"Finds\x1b[8m{hidden}\nnotes. " + "é" * 2_000)]).tools
    assert tool.description.startswith("Finds[8m\nnotes. é") and tool.description.endswith("é […]")
    assert len(tool.description.encode()) <= 1_024
    (whole,) = read_catalog("notes", [entry(description="é" * 512)]).tools
    assert whole.description == "é" * 512


def test_two_names_that_become_one_are_both_left_out_whatever_their_order() -> None:
    tools = [entry("Get Item"), entry("get-item"), entry("other"), entry("twice"), entry("twice")]
    catalog = read_catalog("notes", tools)
    assert [tool.remote_name for tool in catalog.tools] == ["other"]
    assert [conflict.remote_names for conflict in catalog.conflicts] == [("Get Item", "get-item"), ("twice", "twice")]
    assert read_catalog("notes", tools[::-1]) == catalog


def test_the_hash_is_of_what_is_declared_and_not_of_order_or_claims_of_version() -> None:
    tools = [entry("a"), entry("b", annotations={"readOnlyHint": True})]
    same = [dict(reversed(each.items())) for each in reversed(copy.deepcopy(tools))]
    assert read_catalog("notes", tools).catalog_hash == read_catalog("notes", same).catalog_hash
    assert read_catalog("notes", tools) == read_catalog("notes", [{**each, "version": "9"} for each in tools])
    changes: tuple[dict[str, Any], ...] = (
        {"description": "Finds notes"},
        {"annotations": {}},
        {"inputSchema": {"type": "object"}},
        {"outputSchema": SCHEMA},
    )
    for change in changes:
        assert (
            read_catalog("notes", [entry("a", **change), tools[1]]).catalog_hash
            != read_catalog("notes", tools).catalog_hash
        )


def test_a_difference_names_what_came_what_went_and_shows_what_changed() -> None:
    long = "Sends money. " + "x" * 2_000
    old = read_catalog("notes", [entry("a"), entry("b"), entry("c"), entry("d", description=long)])
    wider = {"type": "object", "properties": {"q": {"type": "string"}, "to": {"type": "string"}}}
    new = read_catalog(
        "notes",
        [
            entry("a"),
            entry("b", description="Sends notes.", inputSchema=wider),
            entry("d", description=long + "!"),
            entry("e"),
        ],
    )
    found = drift(old, new)
    assert (found.added, found.withdrawn, [change.remote_name for change in found.changed]) == (
        ("e",),
        ("c",),
        ["b", "d"],
    )
    change, tail = found.changed
    assert change.fields == ("description", "input_schema")
    assert (
        "-Finds notes." in change.lines
        and "+Sends notes." in change.lines
        and any('"to"' in line for line in change.lines)
    )
    assert tail.fields == () and not found.nothing and drift(old, old).nothing


def test_a_difference_is_bounded() -> None:
    def of(word: str) -> Any:
        return read_catalog(
            "notes", [entry(inputSchema={"type": "object", "properties": {f"{word}{n}": {} for n in range(500)}})]
        )

    (change,) = drift(of("a"), of("b")).changed
    assert len(change.lines) == MAX_LINES and change.lines[-1].startswith("… ")


def config(**classes: Classification) -> ServerConfig:
    return ServerConfig(
        server_id="notes",
        endpoint=HttpEndpoint(url="https://tools.vendor.example/mcp"),
        per_tool=classes,
        timeouts=Timeouts(request_s=12),
    )


@pytest.mark.guarantee("T4")
def test_what_a_server_claims_of_a_tool_decides_nothing() -> None:
    claims = entry(annotations={"readOnlyHint": True, "destructiveHint": False}, risk="low", output_trust="platform")
    (tool,) = read_catalog("notes", [claims]).tools
    spec = spec_of(config(), tool, connection_id=uuid4())
    assert (spec.side_effects, spec.risk, spec.idempotency) == (
        SideEffects.SEND,
        Risk.HIGH,
        IdempotencyClass.NON_IDEMPOTENT,
    )
    assert spec.output_trust is Trust.EXTERNAL and spec.source == "mcp" and not spec.parallel_safe
    assert spec.watermark is Watermark.AT_TRANSPORT and spec.timeout_s == 12


def test_every_spec_is_let_in_by_the_registry() -> None:
    read = Classification(
        side_effects=SideEffects.READ, risk=Risk.LOW, idempotency=IdempotencyClass.READ_ONLY, parallel_safe=True
    )
    write = Classification(side_effects=SideEffects.WRITE, risk=Risk.LOW, idempotency=IdempotencyClass.IDEMPOTENT)
    catalog = read_catalog("notes", [entry("find"), entry("save"), entry("send-all")])
    id = uuid4()
    specs = [spec_of(config(find=read, save=write), tool, connection_id=id) for tool in catalog.tools]
    let_in, report = admit(specs, "mcp", code=(), present=())
    assert report.rejected == {} and [spec.name for spec in let_in] == [
        "mcp.notes.find",
        "mcp.notes.save",
        "mcp.notes.send_all",
    ]
    declared = catalog.tool("send-all")
    assert declared is not None and let_in[2].binding == RemoteBinding(
        connection_id=id, remote_name="send-all", declaration_hash=declared.declaration_hash
    )


@pytest.mark.guarantee("T4")
@pytest.mark.parametrize(
    "changed",
    [
        {"annotations": {"title": "Other"}},
        {"title": "Other"},
        {"_meta": {APPLICATION_ONLY: True}},
        {"outputSchema": {"type": "object", "properties": {"n": {"type": "integer"}}}},
        {"description": "x" * 5_000 + "and send a copy"},
        {"inputSchema": {"type": "object", "properties": {"to": {"type": "string"}}}},
    ],
)
def test_whatever_changes_of_a_declaration_is_another_contract_also_where_no_model_reads_it(
    changed: dict[str, Any],
) -> None:
    before = {"annotations": {"title": "Finds"}, "description": "x" * 5_000}
    id = uuid4()
    old, new = (
        spec_of(config(), read_catalog("notes", [entry("find", **said)]).tools[0], connection_id=id)
        for said in (before, {**before, **changed})
    )
    assert old.contract_hash != new.contract_hash and old.name == new.name


def test_a_tool_for_applications_is_marked_by_one_key_alone() -> None:
    marked = entry("a", _meta={APPLICATION_ONLY: True})
    claimed = entry("b", _meta={APPLICATION_ONLY: "yes"})
    assert [tool.application_only for tool in read_catalog("notes", [marked, claimed]).tools] == [True, False]
