"""Stored contracts that this release did not write: read where they can be, and one unavailable tool where not."""

import json
from typing import Any

import pytest
from pydantic import BaseModel

from agentic.contract.canonical import canonical, digest_of
from agentic.contract.json_types import JsonObject
from agentic.services.tools.context import CallContext
from agentic.services.tools.contracts import missing_contract, read_contract, readable
from agentic.services.tools.declarations import internal_tool
from agentic.services.tools.models import RemoteBinding, ToolSpec, UnknownBinding
from agentic.services.tools.schemas import provider_schema
from agentic.services.tools.targets import executable


class Words(BaseModel):
    text: str


@internal_tool("crm.find", "Finds people.", version=3)
async def find(ctx: CallContext, args: Words) -> list[str]:
    return []


SPEC = find.spec


def stored(**changes: Any) -> ToolSpec:
    """The spec of a row that another release wrote, its hash being true."""
    written = {**json.loads(SPEC.contract_text()), **changes}
    text = canonical(written).decode()
    return read_contract(contract_hash=digest_of(text.encode()), name="crm.find", version=3, text=text)


def test_a_contract_of_this_release_is_read_as_it_was_stored() -> None:
    text = SPEC.contract_text()
    read = read_contract(contract_hash=SPEC.contract_hash, name="crm.find", version=3, text=text)
    assert read == SPEC
    assert read.contract_hash == SPEC.contract_hash
    assert readable(read)
    assert executable(read)


def test_a_contract_from_before_declarations_were_hashed_is_read_under_the_hash_it_was_stored_with() -> None:
    binding: JsonObject = {
        "type": "remote",
        "connection_id": "0193a0a0-0000-7000-8000-000000000001",
        "remote_name": "find",
    }
    written = canonical({**json.loads(SPEC.contract_text()), "binding": binding}).decode()
    known = digest_of(written.encode())
    read = read_contract(contract_hash=known, name="crm.find", version=3, text=written)
    assert isinstance(read.binding, RemoteBinding) and read.binding.declaration_hash is None
    assert readable(read) and read.contract_hash == known


def test_a_binding_nobody_here_knows_is_kept_as_written_and_not_run() -> None:
    read = stored(binding={"type": "wasm", "module": "m.wasm", "fuel": 9})
    assert isinstance(read.binding, UnknownBinding)
    assert json.loads(read.contract_text())["binding"] == {"type": "wasm", "module": "m.wasm", "fuel": 9}
    assert readable(read)
    assert not executable(read)


@pytest.mark.parametrize("target", ["sandbox", "device", "browser_provider", "a place of the future"])
def test_a_target_this_deployment_lacks_is_read_and_not_run(target: str) -> None:
    read = stored(target=target)
    assert (read.target, executable(read)) == (target, False)


@pytest.mark.parametrize(
    "changes",
    [
        {"colour": "red"},
        {"side_effects": "annihilate"},
        {"risk": None},
        {"binding": {"type": "handler"}},
        {"binding": 7},
        {"binding": {}},
        {"version": "three"},
    ],
    ids=str,
)
def test_a_contract_of_another_shape_is_one_unavailable_tool_that_looks_as_it_did(changes: dict[str, Any]) -> None:
    read = stored(**changes)
    assert not readable(read)
    assert not executable(read)
    assert (read.name, read.version, read.description) == ("crm.find", 3, "Finds people.")
    assert read.input_schema == SPEC.input_schema
    assert read.contract_hash != SPEC.contract_hash, "it keeps the hash of its row"


@pytest.mark.parametrize("schema", [{"type": "array"}, {"$ref": "#/nowhere"}, "text", None, {"type": 5}], ids=str)
def test_of_a_contract_of_another_shape_a_schema_that_nobody_can_carry_is_not_kept(schema: Any) -> None:
    read = stored(input_schema=schema, description=None)
    assert provider_schema(read.input_schema) == {"type": "object", "properties": {}, "additionalProperties": True}


@pytest.mark.parametrize("text", ["", "null", "[]", "{", '{"name": "crm.find"}', "[" * 100_000])
def test_a_damaged_row_raises_nothing(text: str) -> None:
    for contract_hash in ("c1:00", digest_of(text.encode())):
        read = read_contract(contract_hash=contract_hash, name="crm.find", version=3, text=text)
        assert (read.name, read.contract_hash, readable(read)) == ("crm.find", contract_hash, False)


def test_a_row_that_somebody_changed_is_not_believed() -> None:
    text = SPEC.contract_text().replace('"side_effects":"read"', '"side_effects":"none"')
    assert text != SPEC.contract_text()
    assert not readable(read_contract(contract_hash=SPEC.contract_hash, name="crm.find", version=3, text=text))


def test_what_stands_in_for_a_contract_wears_the_hash_effects_were_journaled_under() -> None:
    gone = missing_contract(contract_hash="c1:aa", name="crm.find")
    assert gone.contract_hash == "c1:aa"
    assert gone.journaled
