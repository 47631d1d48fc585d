"""Broken declarations: each is named, all at once, and none is registered."""

from dataclasses import replace
from typing import Any
from uuid import uuid4

import pytest
from pydantic import BaseModel

from agentic.contract.errors import ProgramFault, RegistryError
from agentic.contract.results import ErrorCode
from agentic.contract.trust import Trust
from agentic.services.tools.context import CallContext
from agentic.services.tools.declarations import Tool, internal_tool, vendor_tool
from agentic.services.tools.handlers.errors import UpstreamUnavailableError
from agentic.services.tools.handlers.retries import RetryBudget
from agentic.services.tools.models import (
    IdempotencyClass,
    Mode,
    RemoteBinding,
    Risk,
    SideEffects,
    UnknownBinding,
    Watermark,
)
from agentic.services.tools.registry import build_registry, registration_faults


class Words(BaseModel):
    text: str


class Batch(BaseModel):
    items: list[str]
    text: str = ""


def tool(name: str = "a.b", description: str = "Does.", model: type[BaseModel] = Words, **declared: Any) -> Tool:
    async def handler(ctx: CallContext, args: BaseModel) -> dict[str, str]:
        return {}

    handler.__annotations__["args"] = model
    forced: dict[str, Any] = {key: declared.pop(key) for key in ("binding", "input_schema") if key in declared}
    made = internal_tool(name, description, **declared)(handler)
    return replace(made, spec=made.spec.model_copy(update=forced))


WRITE: dict[str, Any] = {"side_effects": "write", "repeatable": False}
SEND: dict[str, Any] = {
    "side_effects": "send",
    "repeatable": False,
    "idempotency": "conditional",
    "vendor_key_ttl_s": 60,
    "connection": "mail",
}


async def preview(ctx: CallContext, args: BaseModel) -> str:
    return "a line"


async def probe(ctx: CallContext, args: BaseModel) -> None:
    return None


FAULTS: list[tuple[dict[str, Any], str]] = [
    ({"refusals": {Exception: ErrorCode.NOT_FOUND}}, "refusals names Exception; name the leaf classes"),
    ({"refusals": {UpstreamUnavailableError: ErrorCode.NOT_FOUND}}, "refusals names UpstreamUnavailableError"),
    ({"refusals": {KeyError: ErrorCode.DENIED}}, "answers KeyError with 'denied', which is the invoker's"),
    ({"refusals": {KeyError: ErrorCode.RETRYABLE_UPSTREAM}}, "what mends by waiting is raised"),
    ({"retries": RetryBudget(attempts=3, attempt_timeout_s=5, max_wait_s=2), "timeout_s": 19}, "retries may take 19 s"),
    ({"name": "Search"}, "lower-case words joined by dots"),
    ({"name": "search"}, "lower-case words joined by dots"),
    ({"name": "a." + "b" * 64}, "providers accept 64"),
    ({"name": "a." + "b" * 100}, "at most 96 characters"),
    ({"name": "get.user_input"}, "answered by the agent framework itself"),
    ({"name": "ask.user"}, "answered by the agent framework itself"),
    ({"name": "mcp.search"}, "the domain 'mcp' is reserved"),
    ({"name": "device.open"}, "the domain 'device' is reserved"),
    ({"name": "a.b\n"}, "lower-case words joined by dots"),
    ({"description": "  "}, "the description is empty"),
    ({"description": "a" * 20_000}, "the description has more than 16384 bytes"),
    ({"side_effects": "write"}, "declare repeatable=False"),
    ({**WRITE, "repeatable": True}, "repeatable=True is refused"),
    ({**SEND, "repeatable": True}, "repeatable=True is refused"),
    ({**WRITE, "idempotency": "read_only"}, "a write is not read_only"),
    ({**WRITE, "retry": "safe"}, "retry='safe' is for reads"),
    ({"repeatable": False}, "repeatable is for writes and sends"),
    ({"idempotency": "idempotent"}, "a tool without an effect is read_only"),
    ({"watermark": "at_transport"}, "watermark='at_transport' is for writes and sends"),
    ({**WRITE, "idempotency": "conditional"}, "conditional and vendor_key_ttl_s go together"),
    ({**WRITE, "vendor_key_ttl_s": 60}, "conditional and vendor_key_ttl_s go together"),
    ({**SEND, "connection": None}, "a send names the connection"),
    (
        {**SEND, "idempotency": "non_idempotent", "vendor_key_ttl_s": None},
        "a send has a vendor key (conditional), a probe, or may_repeat_because",
    ),
    ({"approval_preview": True}, "approval_preview and a preview function go together"),
    ({"preview": preview}, "approval_preview and a preview function go together"),
    ({"role": "control", "name": "context.add"}, "a control tool has side_effects='none'"),
    ({"role": "control", "side_effects": "none", "target": "sandbox", "name": "tool.call"}, "runs in_process"),
    (
        {"role": "control", "side_effects": "none"},
        "a control tool stands in one of context, conversation, delegate, skill, tool",
    ),
    (
        {
            "role": "control",
            "side_effects": "none",
            "name": "tool.call",
            "idempotency": "conditional",
            "vendor_key_ttl_s": 9,
        },
        "a tool without an effect is read_only",
    ),
    ({"name": "conversation.note"}, "the domain 'conversation' is reserved for control tools"),
    ({"name": "context.note"}, "the domain 'context' is reserved for control tools"),
    ({"name": "delegate.note"}, "the domain 'delegate' is reserved for control tools"),
    ({"name": "tool.note"}, "the domain 'tool' is reserved for control tools"),
    ({"target": "moon"}, "nothing is known of the target 'moon'"),
    ({"target": "device"}, "the target 'device' is for tools that a device brings"),
    ({"target": "web_provider"}, "the target 'web_provider' is for reads"),
    ({"target": "web_provider", **WRITE, "output_trust": "external"}, "the target 'web_provider' is for reads"),
    ({"target": "browser_provider"}, "its tools have output_trust external"),
    ({"target": "unsubscribe_endpoint"}, "is for email.unsubscribe alone"),
    ({"name": "email.unsubscribe"}, "that tool has no other"),
    (
        {**SEND, "name": "email.unsubscribe", "target": "unsubscribe_endpoint"},
        "email.unsubscribe is a send of medium risk, idempotent and not parallel_safe",
    ),
    ({"kind": "mcp"}, "kind 'mcp' does not go with the source 'builtin'"),
    ({"source": "sandbox", "name": "sandbox.run"}, "is registered when it arrives, not with the code"),
    ({"binding": RemoteBinding(connection_id=uuid4(), remote_name="x")}, "a remote binding belongs to a remote source"),
    ({"binding": UnknownBinding(type="wasm")}, "nothing here runs a binding of the type 'wasm'"),
    ({"input_schema": {"type": "array"}}, "the input schema is refused: the root admits no object"),
    ({"probe": probe}, "a probe asks what became of an effect; this tool has none"),
    ({"approval_preview": True, "preview": "text"}, "the preview is no function"),
    ({"policy_facts": ("run",)}, "the fact 'run' cannot be declared"),
    ({"policy_facts": ("is_new",)}, "nothing finds out the fact 'is_new'"),
    ({"metered": True}, "a metered tool declares cost_bound"),
    ({"cost_bound": "1.50"}, "cost_bound is reserved for metered tools"),
    ({"metered": True, "cost_bound": "1e200000"}, "cost_bound is an amount of at most 30 digits"),
    ({"timeout_s": 121}, "a step has 120 seconds"),
    ({"batch_argument": "items", "model": Batch}, "batch_argument and max_batch_size go together"),
    ({"max_batch_size": 3, "model": Batch}, "batch_argument and max_batch_size go together"),
    ({"batch_argument": "text", "max_batch_size": 3, "model": Batch}, "is not a top-level array"),
    ({"batch_argument": "none", "max_batch_size": 3, "model": Batch}, "is not a top-level array"),
    ({"max_results": 3}, "max_results is for a tool whose output is an array"),
]


@pytest.mark.guarantee("N1")
@pytest.mark.parametrize(("declared", "words"), FAULTS, ids=[words for _, words in FAULTS])
def test_a_broken_declaration_is_refused_in_words(declared: dict[str, Any], words: str) -> None:
    with pytest.raises(RegistryError) as raised:
        build_registry([tool(**declared)])
    assert words in str(raised.value)
    assert all(fault.startswith(f"{declared.get('name', 'a.b')}: ") for fault in raised.value.faults)


@pytest.mark.guarantee("N1")
def test_all_faults_of_all_declarations_are_named_at_once() -> None:
    broken = [
        tool("a.b", side_effects="write", timeout_s=500),
        tool("Bad", description=""),
        tool("c.d", metered=True),
    ]
    with pytest.raises(RegistryError) as raised:
        build_registry(broken)
    assert [fault.split(":")[0] for fault in raised.value.faults] == ["a.b", "a.b", "Bad", "Bad", "c.d"]


@pytest.mark.guarantee("N1")
def test_two_tools_of_one_name_or_one_model_facing_name_are_refused() -> None:
    with pytest.raises(RegistryError, match=r"a\.b: declared 2 times"):
        build_registry([tool("a.b"), tool("a.b")])
    with pytest.raises(RegistryError, match=r"a\.b_c and a_b\.c have one model-facing name, a_b_c"):
        build_registry([tool("a.b_c"), tool("a_b.c")])


@pytest.mark.guarantee("N3")
def test_a_schema_that_cannot_be_carried_names_its_tool() -> None:
    broken = tool("a.deep")
    schema: dict[str, Any] = {"type": "object", "properties": {}}
    place = schema
    for _ in range(40):
        inner: dict[str, Any] = {"type": "object", "properties": {}}
        place["properties"]["x"] = inner
        place = inner
    object.__setattr__(broken, "spec", broken.spec.model_copy(update={"input_schema": schema}))
    with pytest.raises(RegistryError, match=r"a\.deep: the input schema is refused"):
        build_registry([broken, tool("c.d")])


@pytest.mark.guarantee("N1")
def test_what_cannot_be_a_declaration_at_all_is_named_field_by_field() -> None:
    with pytest.raises(RegistryError) as raised:
        tool(side_effects="explode", timeout_s=0, max_output_bytes=1, max_results=0, max_batch_size=-1, colour="red")
    fields = [fault.split(": ")[1] for fault in raised.value.faults]
    assert sorted(fields) == [
        "colour",
        "max_batch_size",
        "max_output_bytes",
        "max_results",
        "side_effects",
        "timeout_s",
    ]
    assert all(fault.startswith("a.b: ") for fault in raised.value.faults)


def test_a_tool_whose_handler_cannot_be_called_is_refused() -> None:
    broken = replace(tool(), handler="crm.search")  # type: ignore[arg-type]
    with pytest.raises(RegistryError, match="the handler has no execute to call"):
        build_registry([broken])


@pytest.mark.parametrize("name", ["system.now", "sandbox.run", "skill.manage", "web.fetch", "email.send", "crm.find"])
def test_code_may_use_every_domain_that_is_not_somebody_elses(name: str) -> None:
    assert build_registry([tool(name)]).get(name) is not None


@pytest.mark.parametrize("name", ["conversation.ask", "context.update", "delegate.run", "tool.call", "skill.load"])
def test_control_tools_stand_in_their_own_domains(name: str) -> None:
    control = tool(name, role="control", side_effects="none", idempotency="idempotent")
    assert build_registry([control]).get(name) is not None


def test_freezing_keeps_the_order_once_each_and_refuses_a_name_no_tool_has() -> None:
    registry = build_registry([tool("a.b"), tool("c.d", **WRITE)])
    assert [frozen.spec.name for frozen in registry.freeze(["c.d", "a.b", "c.d"])] == ["c.d", "a.b"]
    assert [frozen.mode for frozen in registry.freeze(["a.b", "c.d"])] == [Mode.INLINE, Mode.PAUSED]
    with pytest.raises(ProgramFault, match=r"no tool is registered under x\.y, z\.z"):
        registry.freeze(["a.b", "x.y", "z.z"])


def test_what_a_declaration_leaves_unsaid_is_the_careful_choice() -> None:
    read, write, send = tool(), tool(**WRITE), tool(**{**SEND, "idempotency": IdempotencyClass.CONDITIONAL})
    assert (read.spec.side_effects, read.spec.idempotency, read.spec.risk) == (
        SideEffects.READ,
        IdempotencyClass.READ_ONLY,
        Risk.LOW,
    )
    assert (write.spec.idempotency, write.spec.risk) == (IdempotencyClass.NON_IDEMPOTENT, Risk.MEDIUM)
    assert send.spec.risk is Risk.HIGH


async def _outside(ctx: CallContext, args: Words) -> dict[str, str]:
    return {}


def test_a_vendor_tool_answers_external_text_unless_it_says_otherwise() -> None:
    assert vendor_tool("a.b", "Does.")(_outside).spec.output_trust == "external"
    assert vendor_tool("a.b", "Does.", output_trust="internal")(_outside).spec.output_trust == "internal"


def test_every_field_that_policy_the_model_or_the_boundary_reads_changes_the_contract_hash() -> None:
    base = tool().spec
    changes: dict[str, Any] = {
        "version": 2,
        "description": "Other.",
        "timeout_s": 5,
        "risk": Risk.HIGH,
        "side_effects": SideEffects.WRITE,
        "idempotency": IdempotencyClass.IDEMPOTENT,
        "output_trust": Trust.EXTERNAL,
        "max_results": 3,
        "egress": "open",
        "connection": "x",
        "watermark": Watermark.AT_TRANSPORT,
        "input_schema": {"type": "object"},
    }
    before = base.contract_hash
    hashes = {base.model_copy(update={name: value}).contract_hash for name, value in changes.items()}
    assert len(hashes | {before}) == len(changes) + 1
    assert tool().spec.contract_hash == base.contract_hash


def _sync(ctx: CallContext, args: Words) -> str:
    return ""


async def _one(args: Words) -> str:
    return ""


async def _untyped(ctx: CallContext, args) -> str:  # type: ignore[no-untyped-def]  # noqa: ANN001
    return ""


async def _plain(ctx: CallContext, args: dict[str, str]) -> str:
    return ""


async def _silent(ctx: CallContext, args: Words):  # type: ignore[no-untyped-def]  # noqa: ANN202
    return ""


async def _nothing(ctx: CallContext, args: Words) -> None:
    return None


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (_sync, "write 'async def'"),
        (_one, "it takes 1"),
        (_untyped, "annotate 'args' with a pydantic model"),
        (_plain, "annotate 'args' with a pydantic model"),
        (_silent, "annotate what it returns"),
        (_nothing, "annotate what it returns"),
    ],
)
def test_a_function_whose_annotations_do_not_tell_enough_is_refused_by_name(function: Any, words: str) -> None:
    with pytest.raises(ProgramFault, match=words) as raised:
        internal_tool("a.b", "Does.")(function)
    assert function.__qualname__ in str(raised.value)


@pytest.mark.guarantee("N1")
@pytest.mark.parametrize("field", ["input_schema", "output_schema", "binding"])
def test_schema_and_handler_drift_fails_validation_before_publication(field: str) -> None:
    """Both follow from the function, so a second word about either is refused rather than passed over."""

    async def handler(ctx: CallContext, args: Words) -> Words:
        return args

    with pytest.raises(RegistryError, match=f"a.b: {field} follows from the function"):
        internal_tool("a.b", "Does.", **{field: {"type": "object"}})(handler)


def test_an_annotation_that_cannot_be_found_says_where_to_put_it() -> None:
    async def handler(ctx: CallContext, args: "Local") -> str:  # type: ignore[name-defined]  # noqa: F821
        return ""

    with pytest.raises(ProgramFault, match="names that the module defines at its top level"):
        internal_tool("a.b", "Does.")(handler)


def test_the_full_vendor_retry_budget_fits_inside_the_declared_tool_timeout() -> None:
    budget = RetryBudget(attempts=3, attempt_timeout_s=5, max_wait_s=2)
    assert registration_faults([tool(retries=budget, timeout_s=20)]) == []
    assert "before timeout_s, 19.4" in registration_faults([tool(retries=budget, timeout_s=19.4)])[0]


@pytest.mark.parametrize(
    "declared",
    [
        {"batch_argument": "items"},
        {"max_batch_size": 3},
        {"batch_argument": "text", "max_batch_size": 3},
        {"batch_argument": "gone", "max_batch_size": 3},
    ],
)
def test_batch_argument_and_batch_size_must_appear_together_and_the_argument_must_name_a_top_level_array(
    declared: dict[str, Any],
) -> None:
    assert len(registration_faults([tool(model=Batch, **declared)])) == 1
    assert registration_faults([tool(model=Batch, batch_argument="items", max_batch_size=3)]) == []
