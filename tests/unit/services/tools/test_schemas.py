"""Which schemas are let in, how they validate, and what a model is shown of them."""

import copy
import json
import socket
import threading
import time
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentic.services.tools.output_validation import validate_output
from agentic.services.tools.schemas import (
    SchemaRefused,
    check_schema,
    provider_schema,
    unenforced_formats,
    validator_for,
)

DRAFT_7 = "http://json-schema.org/draft-07/schema#"
NODE = {"type": "object", "properties": {"children": {"type": "array", "items": {"$ref": "#/$defs/node"}}}}
TREE: dict[str, Any] = {"$ref": "#/$defs/node", "$defs": {"node": NODE}}
POINT = {"type": "array", "prefixItems": [{"type": "number"}, {"type": "number"}], "items": False}
TUPLE: dict[str, Any] = {
    "type": "object",
    "properties": {"line": {"type": "array", "prefixItems": [{"$ref": "#/$defs/Point"}, {"$ref": "#/$defs/Point"}]}},
    "$defs": {"Point": POINT},
}
OLD: dict[str, Any] = {
    "$schema": DRAFT_7,
    "type": "object",
    "properties": {"a": {"$ref": "#/definitions/a"}, "t": {"type": "array", "items": [{"type": "string"}]}},
    "definitions": {"a": {"type": "string"}},
}
DESCRIBED: dict[str, Any] = {
    "type": "object",
    "properties": {"a": {"$ref": "#/$defs/a", "description": "the a"}},
    "$defs": {"a": {"type": "string"}},
}
RECURSIVE_ROOT: dict[str, Any] = {"type": "object", "properties": {"child": {"$ref": "#"}}}
EITHER: dict[str, Any] = {
    "type": "object",
    "properties": {"url": {"type": "string"}, "text": {"type": "string"}},
    "anyOf": [{"required": ["url"]}, {"required": ["text"]}],
}


@pytest.mark.guarantee("N3")
@pytest.mark.parametrize(
    "schema", [TREE, TUPLE, OLD, DESCRIBED, RECURSIVE_ROOT, EITHER, {}, True, {"type": "object"}], ids=str
)
def test_a_schema_that_can_be_carried_is_let_in_and_shown_self_contained(schema: Any) -> None:
    before = copy.deepcopy(schema)
    check_schema(schema)
    shown = provider_schema(schema)
    assert shown["type"] == "object"
    assert isinstance(shown["properties"], dict)
    assert not shown.keys() & {"anyOf", "oneOf", "allOf", "not", "if", "$ref", "$schema"}
    check_schema(shown)  # a dangling pointer would be refused
    assert schema == before
    shown["properties"]["more"] = {}
    assert schema == before


def test_references_validate_through_every_level() -> None:
    assert validator_for(TREE).problems({"children": [{"children": []}]}) == ()
    assert validator_for(TREE).problems({"children": [{"children": 1}]}) == (
        "'children/0/children': must be of type array",
    )
    assert validator_for(TUPLE).problems({"line": [[0, 1], [2, 3]]}) == ()
    assert validator_for(TUPLE).problems({"line": [[0, 1, 9]]})
    assert validator_for(DESCRIBED).problems({"a": 1}) == ("'a': must be of type string",)
    assert validator_for(RECURSIVE_ROOT).problems({"child": {"child": {"child": 1}}})


def test_a_declared_older_dialect_is_honoured() -> None:
    assert validator_for(OLD).problems({"a": "x", "t": ["y", 1]}) == ()
    assert validator_for(OLD).problems({"t": [1]}) == ("'t/0': must be of type string",)


@pytest.mark.guarantee("N3")
@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        (False, "accepts nothing"),
        ([], "no object"),
        ({"$ref": "#"}, "leads back to itself"),
        (
            {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}},
            "leads back to itself",
        ),
        ({"$ref": "#/$defs/a", "$defs": {"a": {"anyOf": [{"$ref": "#/$defs/a"}, {}]}}}, "leads back to itself"),
        ({"properties": {"a": {"$ref": "#/$defs/gone"}}}, "#/properties/a: .*'#/\\$defs/gone' points at nothing"),
        ({"$ref": "http://127.0.0.1:9/s"}, "does not point into the schema itself"),
        ({"properties": {"a": {"$ref": "file:///etc/hostname"}}}, "does not point into the schema itself"),
        ({"$ref": "other.json"}, "does not point into the schema itself"),
        ({"$ref": 5}, "is no text"),
        ({"$dynamicRef": "#x"}, "uses \\$dynamicRef"),
        ({"properties": {"a": {"$id": "http://x.test/"}}}, "has an \\$id"),
        ({"$schema": "http://json-schema.org/draft-04/schema#"}, "draft-04.*is not a dialect"),
        ({"$schema": "https://x.test/mine"}, "is not a dialect"),
        ({"exclusiveMinimum": True, "minimum": 1}, "not a usable JSON Schema"),
        ({"type": "objekt"}, "not a usable JSON Schema"),
        ({"properties": []}, "not a usable JSON Schema"),
        ({"pattern": "(?=a)b"}, "not a usable JSON Schema"),
        ({"pattern": "(a)\\1"}, "not a usable JSON Schema"),
        ({"patternProperties": {"(?!x)": {}}}, "not a usable JSON Schema"),
        ({"pattern": "a{1000}{1000}{1000}"}, "not a usable JSON Schema"),
        ({"description": "x" * 33_000}, "at most 32768"),
        ({"description": "x" * 20_000_000}, "at most 32768"),
        ({"default": float("nan")}, "not plain JSON"),
        ({"properties": {"\u00e9": {}, "e\u0301": {}}}, "same text"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_a_schema_nobody_can_carry_is_refused_with_the_place_and_the_rule(schema: Any, reason: str) -> None:
    with pytest.raises(SchemaRefused, match=reason) as refused:
        check_schema(schema)
    assert len(str(refused.value)) < 600


@pytest.mark.guarantee("N3")
def test_a_schema_too_deep_or_too_wide_once_expanded_is_refused_at_once() -> None:
    deep: dict[str, Any] = {}
    for _ in range(10_000):
        deep = {"anyOf": [deep]}
    with pytest.raises(SchemaRefused, match="16 deep"):
        check_schema(deep)
    levels = {f"l{n}": {"properties": {f"p{i}": {"$ref": f"#/$defs/l{n + 1}"} for i in range(10)}} for n in range(8)}
    bomb = {"$ref": "#/$defs/l0", "$defs": {**levels, "l8": {}}}
    started = time.monotonic()
    with pytest.raises(SchemaRefused, match="10000 subschemas once its"):
        check_schema(bomb)
    assert time.monotonic() - started < 5


@pytest.mark.guarantee("N3")
def test_a_reference_is_never_fetched_from_anywhere() -> None:
    asked: list[bool] = []
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.5)

        def listen() -> None:
            try:
                server.accept()[0].close()
                asked.append(True)
            except TimeoutError:
                return

        listener = threading.Thread(target=listen)
        listener.start()
        address = f"http://127.0.0.1:{server.getsockname()[1]}/s.json"
        for schema in (
            {"$ref": address},
            {"$schema": address},
            {"$id": address, "$ref": "x.json"},
            {"properties": {"a": {"$ref": address}}},
        ):
            with pytest.raises(SchemaRefused):
                check_schema(schema)
            with pytest.raises(SchemaRefused):
                validator_for(schema)
        listener.join(timeout=5)
    assert asked == []


def test_a_pattern_made_to_hang_answers_at_once() -> None:
    attack = {"properties": {"a": {"pattern": "^(a+)+$"}}, "patternProperties": {"^(a+)+$": {}}}
    check_schema(attack)
    started = time.monotonic()
    assert validator_for(attack).problems({"a": "a" * 40 + "!", "a" * 40 + "!": 1})
    assert time.monotonic() - started < 1


def test_letters_of_any_script_match_a_unicode_class() -> None:
    assert validate_output("Žofie", {"pattern": "^\\p{L}+$"}) is None
    assert validate_output("x1", {"pattern": "^\\p{L}+$"}) == "must match the pattern ^\\p{L}+$"


@pytest.mark.parametrize("name", ["uuid", "date-time", "date", "email", "uri", "ipv4", "hostname", "duration"])
def test_a_format_that_is_listed_as_enforced_is(name: str) -> None:
    assert validate_output("no pe!", {"format": name}) == f"must have the format {name}"
    assert unenforced_formats({"format": name}) == ()


def test_a_format_that_nobody_enforces_is_ignored_and_reported_with_its_place() -> None:
    schema = {
        "properties": {"at": {"format": "datetime"}, "x": {"items": {"format": "uint32"}}},
        "default": {"format": "no"},
    }
    assert validate_output({"at": "nope"}, schema) is None
    assert validate_output({"id": "nope"}, {"$schema": DRAFT_7, "properties": {"id": {"format": "uuid"}}}) is None
    assert unenforced_formats(schema) == ("#/properties/at: datetime", "#/properties/x/items: uint32")
    assert unenforced_formats({"$schema": DRAFT_7, "properties": {"id": {"format": "uuid"}}}) == (
        "#/properties/id: uuid",
    )


def test_an_ordinary_schema_reaches_the_model_as_it_was_declared() -> None:
    declared = {
        "type": "object",
        "title": "Search",
        "description": "d",
        "properties": {"q": {"anyOf": [{"type": "string"}, {"type": "null"}]}, "page": {"$ref": "#/$defs/p"}},
        "required": ["q"],
        "additionalProperties": False,
        "$defs": {"p": {"type": "integer"}},
    }
    assert json.dumps(provider_schema(declared), sort_keys=True) == json.dumps(declared, sort_keys=True)


def test_a_tuple_of_the_older_dialect_is_shown_in_the_newer_one() -> None:
    assert provider_schema(OLD)["properties"]["t"] == {"type": "array", "prefixItems": [{"type": "string"}]}


def test_members_that_only_branches_declare_are_shown_and_required_where_all_require_them() -> None:
    branch_a = {
        "type": "object",
        "properties": {"kind": {"const": "a"}, "a": {"$ref": "#/oneOf/1/properties/b"}},
        "required": ["kind", "a"],
    }
    branch_b = {"type": "object", "properties": {"kind": {"const": "b"}, "b": {"type": "string"}}, "required": ["kind"]}
    shown = provider_schema({"oneOf": [branch_a, branch_b]})
    assert shown["properties"].keys() == {"kind", "a", "b"}
    assert shown["required"] == ["kind"]
    assert shown["$defs"][shown["properties"]["a"]["$ref"].rsplit("/", 1)[1]] == {"type": "string"}


@pytest.mark.guarantee("N3")
@pytest.mark.parametrize(
    "schema", [{"type": "array"}, {"type": "string"}, False, {"enum": ["a"]}, {"anyOf": [{"type": "string"}]}]
)
def test_a_root_that_admits_no_object_cannot_be_shown_as_a_tool(schema: Any) -> None:
    with pytest.raises(SchemaRefused):
        provider_schema(schema)


def test_one_schema_is_compiled_once() -> None:
    assert validator_for({"type": "object", "title": "once"}) is validator_for({"type": "object", "title": "once"})


@pytest.mark.parametrize(
    ("value", "schema", "words"),
    [
        ({"n": 5}, {"properties": {"n": {"maximum": 4}}}, "'n': must be at most 4"),
        ({"n": 5}, {"properties": {"n": {"enum": ["a", "b"]}}}, "'n': must be one of [\"a\",\"b\"]"),
        ({}, {"required": ["n"]}, "'n' is required"),
        ([1, 1], {"uniqueItems": True}, "must not repeat an item"),
        ([], {"minItems": 1}, "must have at least 1 items"),
        (1, {"not": {}}, "breaks the rule not"),
        (0.5, {"multipleOf": 0.2}, "must be a multiple of 0.2"),
        ({"a": {"b": 1}}, {"properties": {"a": {"anyOf": [{"type": "string"}, {"properties": {"b": {"type": "null"}}}]}}},
         "'a': none of its allowed forms fits (must be of type string; or 'b': must be of type null)"),
        (1, {"oneOf": [{}, {}]}, "must match exactly one of its allowed forms"),
    ],
)  # fmt: skip
def test_a_broken_rule_is_said_in_words(value: Any, schema: dict[str, Any], words: str) -> None:
    assert validate_output(value, schema) == words


@pytest.mark.guarantee("B2")
@given(st.text(min_size=12), st.sampled_from(["type", "enum", "pattern", "format", "maxLength", "const", "anyOf"]))
def test_no_message_contains_the_value(value: str, rule: str) -> None:
    rules: dict[str, Any] = {
        "type": "integer",
        "enum": [1],
        "pattern": "^$",
        "format": "uuid",
        "maxLength": 1,
        "const": 0,
        "anyOf": [False],
    }
    message = validate_output({"a": [value]}, {"properties": {"a": {"items": {rule: rules[rule]}}}})
    assert message is not None
    assert value not in message
    assert len(message) <= 1_000


def test_a_value_the_validator_cannot_read_is_a_problem_and_no_exception() -> None:
    unreadable: list[Any] = [{"a": "\ud800"}, {1: 2}, {"a": object()}]
    for value in unreadable:
        assert validate_output(value, {"additionalProperties": {"type": "integer"}}) == "is not plain JSON data"


def test_an_answer_may_have_members_its_schema_does_not_name() -> None:
    assert validate_output({"id": 1, "new": 2}, {"type": "object", "properties": {"id": {"type": "integer"}}}) is None


rules = st.fixed_dictionaries(
    {},
    optional={
        "type": st.sampled_from(["object", "array", "string", "integer", "number", "boolean", "null"]),
        "minimum": st.integers(-5, 5),
        "maxLength": st.integers(0, 5),
        "minItems": st.integers(0, 3),
        "enum": st.lists(st.none() | st.booleans() | st.integers(-3, 3) | st.text(max_size=3), min_size=1),
        "uniqueItems": st.booleans(),
    },
)
schemas = st.recursive(
    rules,
    lambda inner: st.builds(
        lambda base, extra: {**base, **extra},
        rules,
        st.fixed_dictionaries(
            {},
            optional={
                "properties": st.dictionaries(st.sampled_from("ab"), inner),
                "items": inner,
                "anyOf": st.lists(inner, min_size=1, max_size=2),
                "not": inner,
            },
        ),
    ),
    max_leaves=5,
)
values = st.recursive(
    st.none() | st.booleans() | st.integers(-6, 6) | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=6,
)


@given(schemas, values)
def test_another_validator_agrees(schema: dict[str, Any], value: Any) -> None:
    ours = validate_output(value, schema) is None
    assert ours is jsonschema.Draft202012Validator(schema).is_valid(value)
