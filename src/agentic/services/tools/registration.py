"""Every check a declaration passes before it is a tool. Pure; what becomes of a faulty one is the registry's to say.

Each check yields its faults in words, so that all of them are named at once (N1, N3).
"""

from collections.abc import Collection, Iterator, Sequence
from typing import Final

from agentic.services.tools.context import answer_reserve_s
from agentic.services.tools.declarations import Tool
from agentic.services.tools.domains import domain_faults
from agentic.services.tools.handlers.errors import HandlerError
from agentic.services.tools.metering import countable
from agentic.services.tools.models import (
    FRAMEWORK_NAMES,
    MAX_MODEL_NAME_LENGTH,
    MAX_NAME_LENGTH,
    NAME_PATTERN,
    STEP_BUDGET_S,
    HandlerBinding,
    IdempotencyClass,
    RemoteBinding,
    SideEffects,
    ToolSpec,
    UnknownBinding,
    Watermark,
    model_tool_name,
)
from agentic.services.tools.outcomes import PIPELINE_CODES, mends_by_waiting
from agentic.services.tools.schemas import SchemaRefused, check_schema, provider_schema
from agentic.services.tools.targets import IN_PROCESS, target_faults

URL_SEEN = "url_seen"
"""The fact behind open egress; known of every tool that declares it, and found out by the platform."""
RESERVED_FACTS = frozenset({"principal", "run", "arguments"})
"""Names a fact may not have: rules know these things of every call."""
MAX_DESCRIPTION_BYTES: Final = 16 * 1024
"""Of what is stored; a model is shown the beginning that its provider takes."""


def tool_faults(tool: Tool, *, facts: Collection[str]) -> list[str]:
    """What is wrong with a tool written as code.

    Args:
        facts: names of the facts the deployment can find out.
    """
    spec = tool.spec
    faults = [*spec_faults(spec, facts=facts), *_code_faults(tool)]
    return [f"{spec.name}: {fault}" for fault in faults]


def spec_faults(spec: ToolSpec, *, facts: Collection[str]) -> Iterator[str]:
    """What is wrong with a declaration, whoever made it."""
    yield from _name_faults(spec)
    yield from _source_faults(spec)
    yield from _schema_faults(spec)
    yield from _effect_faults(spec)
    yield from target_faults(spec)
    yield from _limit_faults(spec)
    yield from _fact_faults(spec, facts)


def clashes(specs: Sequence[ToolSpec]) -> Iterator[tuple[frozenset[str], str]]:
    """Names that are declared twice, and names that a model could not tell apart (N1): those at fault, and the fault."""
    by_name: dict[str, int] = {}
    by_derived: dict[str, set[str]] = {}
    for spec in specs:
        by_name[spec.name] = by_name.get(spec.name, 0) + 1
        by_derived.setdefault(model_tool_name(spec.name), set()).add(spec.name)
    for name, count in by_name.items():
        if count > 1:
            yield frozenset({name}), f"{name}: declared {count} times"
    for derived, names in by_derived.items():
        if len(names) > 1:
            yield frozenset(names), f"{' and '.join(sorted(names))} have one model-facing name, {derived}"


def _name_faults(spec: ToolSpec) -> Iterator[str]:
    if not NAME_PATTERN.fullmatch(spec.name):
        yield "a name is lower-case words joined by dots, such as 'crm.search_people'"
    else:
        if len(spec.name) > MAX_NAME_LENGTH:
            yield f"a name has at most {MAX_NAME_LENGTH} characters"
        derived = model_tool_name(spec.name)
        if len(derived) > MAX_MODEL_NAME_LENGTH:
            yield f"the model-facing name {derived} has {len(derived)} characters; providers accept {MAX_MODEL_NAME_LENGTH}"
        if derived in FRAMEWORK_NAMES:
            yield f"the model-facing name {derived} is answered by the agent framework itself"
        yield from domain_faults(spec)
    if not spec.description.strip():
        yield "the description is empty; it is all the model knows of the tool"
    elif len(spec.description.encode("utf-8", "replace")) > MAX_DESCRIPTION_BYTES:
        yield f"the description has more than {MAX_DESCRIPTION_BYTES} bytes; a model is shown its beginning only"


def _source_faults(spec: ToolSpec) -> Iterator[str]:
    if (spec.kind == "mcp") != (spec.source == "mcp"):
        yield f"kind '{spec.kind}' does not go with the source '{spec.source}'; 'mcp' is both or neither"
    match spec.binding:
        case RemoteBinding() if spec.source == "builtin":
            yield "a remote binding belongs to a remote source"
        case HandlerBinding() if spec.source == "mcp":
            yield "a tool of an MCP server is bound to a connection and the name its server published"
        case UnknownBinding(type=tag):
            yield f"nothing here runs a binding of the type '{tag}'"
        case _:
            pass


def _schema_faults(spec: ToolSpec) -> Iterator[str]:
    for which, schema in (("input", spec.input_schema), ("output", spec.output_schema)):
        try:
            check_schema(schema)
            if which == "input":
                provider_schema(schema)
        except SchemaRefused as error:
            yield f"the {which} schema is refused: {error}"


def _effect_faults(spec: ToolSpec) -> Iterator[str]:
    if spec.journaled:
        if spec.repeatable is None:
            yield "declare repeatable=False: a second identical call in a run is answered from the first"
        elif spec.repeatable:
            yield "repeatable=True is refused: a replay cannot be told from a deliberate repeat; add an argument that tells them apart"
        if spec.idempotency is IdempotencyClass.READ_ONLY:
            yield f"a {spec.side_effects} is not read_only: declare idempotent, conditional or non_idempotent"
        if spec.retry != "none":
            yield "retry='safe' is for reads; an effect is retried through its claim"
    else:
        if spec.repeatable is not None:
            yield "repeatable is for writes and sends; a read takes no claim"
        if spec.idempotency not in _without_effect(spec):
            yield "a tool without an effect is read_only"
        if spec.watermark is Watermark.AT_TRANSPORT:
            yield "watermark='at_transport' is for writes and sends"
    if (spec.idempotency is IdempotencyClass.CONDITIONAL) != (spec.vendor_key_ttl_s is not None):
        yield "conditional and vendor_key_ttl_s go together: how long does the vendor remember a key?"
    if (
        spec.side_effects is SideEffects.SEND
        and spec.connection is None
        and not isinstance(spec.binding, RemoteBinding)
    ):
        yield "a send names the connection whose account it uses"
    if spec.role == "control" and (spec.side_effects is not SideEffects.NONE or spec.target != IN_PROCESS):
        yield "a control tool has side_effects='none' and runs in_process"
    if spec.metered and spec.cost_bound is None:
        yield "a metered tool declares cost_bound, the most one call can cost"
    if spec.cost_bound is not None and not spec.metered:
        yield "cost_bound is reserved for metered tools; declare metered=True"
    if spec.cost_bound is not None and not countable(spec.cost_bound):
        yield "cost_bound is an amount of at most 30 digits before and after the point"


def _without_effect(spec: ToolSpec) -> tuple[IdempotencyClass, ...]:
    if spec.role == "control":  # a transition of the run may be one that a second call does not change
        return IdempotencyClass.READ_ONLY, IdempotencyClass.IDEMPOTENT
    return (IdempotencyClass.READ_ONLY,)


def _limit_faults(spec: ToolSpec) -> Iterator[str]:
    if spec.timeout_s > STEP_BUDGET_S:
        yield f"timeout_s is {spec.timeout_s:g}; a step has {STEP_BUDGET_S} seconds"
    if (spec.batch_argument is None) != (spec.max_batch_size is None):
        yield "batch_argument and max_batch_size go together"
    elif spec.batch_argument is not None:
        properties = spec.input_schema.get("properties")
        argument = properties.get(spec.batch_argument) if isinstance(properties, dict) else None
        if not (isinstance(argument, dict) and argument.get("type") == "array"):
            yield f"batch_argument '{spec.batch_argument}' is not a top-level array of the input schema"
    if spec.max_results is not None and spec.output_schema.get("type") != "array":
        yield "max_results is for a tool whose output is an array"


def _fact_faults(spec: ToolSpec, facts: Collection[str]) -> Iterator[str]:
    for name in spec.policy_facts:
        if name in RESERVED_FACTS:
            yield f"the fact '{name}' cannot be declared; rules know it of every call"
        elif name not in facts:
            yield f"nothing finds out the fact '{name}'; register a resolver for it, or take it out of policy_facts"


def _code_faults(tool: Tool) -> Iterator[str]:
    spec = tool.spec
    if spec.source != "builtin":
        yield f"a tool of the source {spec.source} is registered when it arrives, not with the code"
    if not callable(getattr(tool.handler, "execute", None)):
        yield "the handler has no execute to call"
    if spec.approval_preview != (tool.preview is not None):
        yield "approval_preview and a preview function go together"
    parts: tuple[tuple[str, object], ...] = (("preview", tool.preview), ("probe", tool.probe))
    for which, part in parts:
        if part is not None and not callable(part):
            yield f"the {which} is no function"
    yield from _refusal_faults(tool)
    if tool.retries is not None and tool.retries.total_s > spec.timeout_s - answer_reserve_s(spec.timeout_s):
        yield (
            f"retries may take {tool.retries.total_s:g} seconds, with every attempt and every wait, and the answer must be there "
            f"before timeout_s, {spec.timeout_s:g}; declare fewer or shorter attempts, or more time"
        )
    if tool.probe is not None and not spec.journaled:
        yield "a probe asks what became of an effect; this tool has none"
    if (
        spec.side_effects is SideEffects.SEND
        and spec.idempotency is IdempotencyClass.NON_IDEMPOTENT
        and tool.probe is None
        and not spec.may_repeat_because
    ):
        yield "a send has a vendor key (conditional), a probe, or may_repeat_because=… says why neither exists"


def _refusal_faults(tool: Tool) -> Iterator[str]:
    for kind, code in tool.refusals.items():
        if kind is Exception or issubclass(kind, HandlerError):
            yield f"refusals names {kind.__name__}; name the leaf classes of the domain that are answers"
        elif code in PIPELINE_CODES:
            yield f"refusals answers {kind.__name__} with '{code}', which is the invoker's to conclude"
        elif mends_by_waiting(code):
            yield f"refusals answers {kind.__name__} with '{code}'; what mends by waiting is raised as RetryableUpstreamError"
