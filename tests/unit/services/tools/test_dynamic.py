"""Tools that arrive while the deployment runs: let in one by one, under the source they came from, for one organization."""

from typing import Any
from uuid import UUID, uuid4

import pytest
from pydantic import BaseModel

from agentic.contract.errors import ProgramFault
from agentic.contract.trust import Trust
from agentic.services.tools.context import CallContext
from agentic.services.tools.declarations import Tool, internal_tool
from agentic.services.tools.models import (
    HandlerBinding,
    IdempotencyClass,
    RemoteBinding,
    Risk,
    SideEffects,
    Source,
    ToolSpec,
    UnknownBinding,
)
from agentic.services.tools.registry import ToolRegistry, build_registry

HERE, ELSEWHERE = uuid4(), uuid4()
CONNECTION = uuid4()


class Reaches:
    """The code behind a tool that arrived."""

    def __init__(self, spec: ToolSpec) -> None:
        self.spec = spec

    async def execute(self, ctx: CallContext, args: BaseModel) -> Any:
        return {}


def arrived(name: str, **fields: Any) -> ToolSpec:
    base = ToolSpec(
        name=name,
        description="Finds pages.",
        input_schema={"type": "object", "properties": {"q": {"type": "string"}}},
        output_schema={},
        kind="mcp",
        binding=RemoteBinding(connection_id=CONNECTION, remote_name=name),
        side_effects=SideEffects.READ,
        idempotency=IdempotencyClass.READ_ONLY,
        risk=Risk.LOW,
        source="mcp",
    )
    return base.model_copy(update=fields)


class Words(BaseModel):
    text: str


@internal_tool("crm.find", "Finds people.")
async def find(ctx: CallContext, args: Words) -> list[str]:
    return []


@pytest.fixture
def registry() -> ToolRegistry:
    return build_registry([find])


def register(registry: ToolRegistry, *specs: ToolSpec, source: Source = "mcp", organization_id: UUID = HERE) -> Any:
    return registry.register_dynamic(specs, source, organization_id=organization_id, handler=Reaches)


def test_an_accepted_tool_is_found_by_its_organization_and_by_nobody_else(registry: ToolRegistry) -> None:
    report = register(registry, arrived("mcp.wiki.search"))
    assert (report.accepted, report.rejected) == (("mcp.wiki.search",), {})
    found = registry.get("mcp.wiki.search", HERE)
    assert isinstance(found, Tool)
    assert registry.get("mcp.wiki.search", ELSEWHERE) is None
    assert registry.get("mcp.wiki.search") is None
    assert [spec.name for spec in registry.resolve(["mcp.wiki.search", "crm.find"], HERE)] == [
        "mcp.wiki.search",
        "crm.find",
    ]
    with pytest.raises(ProgramFault, match=r"no tool is registered under mcp\.wiki\.search"):
        registry.resolve(["mcp.wiki.search"], ELSEWHERE)


@pytest.mark.parametrize(
    ("source", "name", "kind"),
    [("mcp", "mcp.wiki.search", "mcp"), ("device", "device.phone", "vendor"), ("sandbox", "sandbox.run", "vendor")],
)
def test_what_a_source_says_of_its_own_trust_is_overwritten(
    registry: ToolRegistry, source: Source, name: str, kind: str
) -> None:
    claims = arrived(name, output_trust=Trust.PLATFORM, source="builtin", kind=kind)
    assert register(registry, claims, source=source).accepted == (name,)
    found = registry.get(name, HERE)
    assert found is not None
    assert (found.spec.output_trust, found.spec.source) == (Trust.EXTERNAL, source)
    assert found.spec.contract_hash != claims.contract_hash


def test_nothing_is_registered_as_code_while_the_deployment_runs(registry: ToolRegistry) -> None:
    with pytest.raises(ProgramFault, match="none is registered while it runs"):
        register(registry, arrived("crm.drop"), source="builtin")
    assert registry.get("crm.drop", HERE) is None


REJECTED: list[tuple[dict[str, Any], str]] = [
    ({"name": "crm.find"}, "the domain 'crm' belongs to somebody else"),
    ({"name": "web.fetch"}, "the domain 'web' belongs to the deployment's code"),
    ({"name": "device.tap"}, "a tool of the source mcp is named 'mcp.…'"),
    ({"name": "mcp.search"}, "a tool of an MCP server is named 'mcp.<server>.<name>'"),
    ({"name": "mcp.wiki." + "x" * 60}, "providers accept 64"),
    ({"name": "mcp.wiki.Search"}, "lower-case words joined by dots"),
    ({"description": " "}, "the description is empty"),
    ({"input_schema": {"type": "array"}}, "the input schema is refused"),
    ({"input_schema": {"$ref": "https://schemas.example/a.json"}}, "the input schema is refused"),
    ({"output_schema": {"type": "nothing"}}, "the output schema is refused"),
    ({"kind": "vendor"}, "kind 'vendor' does not go with the source 'mcp'"),
    ({"binding": HandlerBinding(handler_key="x")}, "bound to a connection and the name its server published"),
    ({"binding": UnknownBinding(type="wasm")}, "nothing here runs a binding of the type 'wasm'"),
    ({"role": "control", "side_effects": SideEffects.NONE}, "none arrives later"),
    ({"approval_preview": True}, "a tool that arrives has none"),
    ({"side_effects": SideEffects.SEND, "repeatable": True}, "repeatable=True is refused"),
    ({"timeout_s": 500.0}, "a step has 120 seconds"),
    ({"policy_facts": ("is_new",)}, "nothing finds out the fact 'is_new'"),
]


@pytest.mark.guarantee("N3")
@pytest.mark.parametrize(("fields", "words"), REJECTED, ids=[words for _, words in REJECTED])
def test_a_faulty_entry_costs_that_one_tool_and_says_why(
    registry: ToolRegistry, fields: dict[str, Any], words: str
) -> None:
    broken = arrived(
        fields.get("name", "mcp.wiki.broken"), **{key: value for key, value in fields.items() if key != "name"}
    )
    report = register(registry, arrived("mcp.wiki.search"), broken, arrived("mcp.wiki.read"))
    assert report.accepted == ("mcp.wiki.search", "mcp.wiki.read")
    assert list(report.rejected) == [broken.name]
    assert words in report.rejected[broken.name]
    assert [entry.name for entry in report.entries] == ["mcp.wiki.search", broken.name, "mcp.wiki.read"]


def test_a_remote_send_needs_no_reason_because_its_connection_and_its_unknown_ends_are_known(
    registry: ToolRegistry,
) -> None:
    send = arrived(
        "mcp.mail.send",
        side_effects=SideEffects.SEND,
        idempotency=IdempotencyClass.NON_IDEMPOTENT,
        repeatable=False,
        risk=Risk.HIGH,
    )
    assert register(registry, send).accepted == ("mcp.mail.send",)


@pytest.mark.guarantee("N1")
def test_two_of_a_batch_that_could_be_mistaken_for_one_another_are_both_dropped(registry: ToolRegistry) -> None:
    twins = (arrived("mcp.slack.send_message"), arrived("mcp.slack_send.message"))
    for batch in (twins, twins[::-1]):
        report = register(registry, *batch, arrived("mcp.slack.read"))
        assert report.accepted == ("mcp.slack.read",)
        assert set(report.rejected) == {spec.name for spec in twins}
    doubled = register(registry, arrived("mcp.a.b"), arrived("mcp.a.b", version=2))
    assert (doubled.accepted, doubled.rejected) == ((), {"mcp.a.b": "mcp.a.b: declared 2 times"})


@pytest.mark.guarantee("N1")
def test_what_arrives_shadows_neither_code_nor_what_came_before() -> None:
    @internal_tool("sandbox.run_now", "Runs.")
    async def run_now(ctx: CallContext, args: Words) -> list[str]:
        return []

    registry = build_registry([run_now])
    for name in ("sandbox.run_now", "sandbox.run.now"):
        report = register(registry, arrived(name, kind="vendor"), source="sandbox")
        assert report.rejected == {name: "its model-facing name sandbox_run_now is that of sandbox.run_now"}
    register(registry, arrived("mcp.slack.send_message"))
    late = register(registry, arrived("mcp.slack_send.message"))
    assert "is that of mcp.slack.send_message" in late.rejected["mcp.slack_send.message"]
    assert register(registry, arrived("mcp.slack_send.message"), organization_id=ELSEWHERE).rejected == {}


def test_a_tool_that_comes_again_takes_its_own_place_and_leaves_when_it_is_broken(registry: ToolRegistry) -> None:
    register(registry, arrived("mcp.wiki.search"), arrived("mcp.wiki.read"))
    register(registry, arrived("mcp.wiki.search", version=2))
    found = registry.get("mcp.wiki.search", HERE)
    assert found is not None
    assert found.spec.version == 2
    register(registry, arrived("mcp.wiki.search", input_schema={"type": "array"}))
    assert registry.get("mcp.wiki.search", HERE) is None
    assert registry.get("mcp.wiki.read", HERE) is not None
    register(
        registry, arrived("mcp.wiki.read", kind="vendor"), source="device"
    )  # no name of that source: it takes nothing away
    assert registry.get("mcp.wiki.read", HERE) is not None


def test_formats_that_validation_ignores_are_reported(registry: ToolRegistry) -> None:
    schema: Any = {
        "type": "object",
        "properties": {"phone": {"type": "string", "format": "phone"}, "at": {"format": "date"}},
    }
    [entry] = register(registry, arrived("mcp.wiki.search", input_schema=schema)).entries
    assert entry.accepted
    assert list(entry.unenforced_formats) == ["input #/properties/phone: phone"]
