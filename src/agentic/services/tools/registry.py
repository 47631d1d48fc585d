"""What a tool is: the validated catalogue of this deployment. It never answers whether a call is allowed.

Registration names every fault at once, so that a broken declaration is mended in one round (N1, N3).
"""

from collections.abc import Collection, Iterable, Iterator, Sequence

from agentic.contract.errors import ProgramFault, RegistryError
from agentic.services.tools.declarations import Tool
from agentic.services.tools.models import (
    FRAMEWORK_NAMES,
    MAX_MODEL_NAME_LENGTH,
    MAX_NAME_LENGTH,
    NAME_PATTERN,
    STEP_BUDGET_S,
    FrozenTool,
    IdempotencyClass,
    RemoteBinding,
    SideEffects,
    ToolSpec,
    Watermark,
    model_tool_name,
)
from agentic.services.tools.schemas import SchemaRefused, check_schema

RESERVED_DOMAINS = frozenset({"mcp", "device"})
"""Domains that code tools may not claim; each belongs to one source of tools."""
URL_SEEN = "url_seen"
"""The fact behind open egress; known of every tool that declares it, and found out by the platform."""
RESERVED_FACTS = frozenset({"principal", "run", "arguments"})
"""Names a fact may not have: rules know these things of every call."""


class ToolRegistry:
    """The runnable tools, by platform name. Built whole or not at all by ``build_registry``."""

    def __init__(self, tools: Iterable[Tool]) -> None:
        self._tools = {tool.spec.name: tool for tool in tools}

    def __iter__(self) -> Iterator[Tool]:
        return iter(self._tools.values())

    def __len__(self) -> int:
        return len(self._tools)

    def get(self, name: str) -> Tool | None:
        """The tool of this name, or ``None``."""
        return self._tools.get(name)

    def freeze(self, names: Sequence[str]) -> list[FrozenTool]:
        """The contracts a run freezes for these names, in this order.

        Raises:
            ProgramFault: a name no tool has.
        """
        missing = [name for name in names if name not in self._tools]
        if missing:
            raise ProgramFault(
                f"no tool is registered under {', '.join(missing)}; register it or take it out of the definition"
            )
        return [
            FrozenTool(spec=self._tools[name].spec, mode=self._tools[name].spec.mode) for name in dict.fromkeys(names)
        ]


def build_registry(tools: Iterable[Tool], *, facts: Collection[str] = ()) -> ToolRegistry:
    """Validate the declarations and build the catalogue.

    Args:
        tools: every tool of the deployment.
        facts: names of the facts that the deployment can find out.

    Raises:
        RegistryError: naming every fault of every declaration.
    """
    listed = list(tools)
    faults = [fault for tool in listed for fault in (*_faults(tool), *_fact_faults(tool.spec, facts))]
    faults += _clashes([tool.spec for tool in listed])
    if faults:
        raise RegistryError(faults)
    return ToolRegistry(listed)


def _faults(tool: Tool) -> Iterator[str]:
    spec = tool.spec
    for fault in (*_name_faults(spec), *_schema_faults(spec), *_effect_faults(tool), *_limit_faults(spec)):
        yield f"{spec.name}: {fault}"


def _name_faults(spec: ToolSpec) -> Iterator[str]:
    if not NAME_PATTERN.match(spec.name):
        yield "a name is lower-case words joined by dots, such as 'crm.search_people'"
        return
    if len(spec.name) > MAX_NAME_LENGTH:
        yield f"a name has at most {MAX_NAME_LENGTH} characters"
    derived = model_tool_name(spec.name)
    if len(derived) > MAX_MODEL_NAME_LENGTH:
        yield f"the model-facing name {derived} has {len(derived)} characters; providers accept {MAX_MODEL_NAME_LENGTH}"
    if derived in FRAMEWORK_NAMES:
        yield f"the model-facing name {derived} is answered by the agent framework itself"
    if spec.name.split(".", 1)[0] in RESERVED_DOMAINS and spec.source == "builtin":
        yield f"the domain '{spec.name.split('.', 1)[0]}' is reserved"
    if not spec.description.strip():
        yield "the description is empty; it is all the model knows of the tool"


def _schema_faults(spec: ToolSpec) -> Iterator[str]:
    for which, schema in (("input", spec.input_schema), ("output", spec.output_schema)):
        try:
            check_schema(schema)
        except SchemaRefused as error:
            yield f"the {which} schema is refused: {error}"


def _effect_faults(tool: Tool) -> Iterator[str]:
    spec = tool.spec
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
        if spec.idempotency is not IdempotencyClass.READ_ONLY:
            yield "a tool without an effect is read_only"
        if spec.watermark is Watermark.AT_TRANSPORT:
            yield "watermark='at_transport' is for writes and sends"
    if (spec.idempotency is IdempotencyClass.CONDITIONAL) != (spec.vendor_key_ttl_s is not None):
        yield "conditional and vendor_key_ttl_s go together: how long does the vendor remember a key?"
    if spec.side_effects is SideEffects.SEND:
        if spec.connection is None:
            yield "a send names the connection whose account it uses"
        if spec.idempotency is IdempotencyClass.NON_IDEMPOTENT and tool.probe is None and not spec.may_repeat_because:
            yield "a send has a vendor key (conditional), a probe, or may_repeat_because=… says why neither exists"
    if spec.approval_preview != (tool.preview is not None):
        yield "approval_preview and a preview function go together"
    if spec.role == "control" and (spec.side_effects is not SideEffects.NONE or spec.target != "in_process"):
        yield "a control tool has side_effects='none' and runs in_process"
    if isinstance(spec.binding, RemoteBinding) and spec.source == "builtin":
        yield "a remote binding belongs to a remote source"
    if spec.metered and spec.cost_bound is None:
        yield "a metered tool declares cost_bound, the most one call can cost"


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
            yield f"{spec.name}: the fact '{name}' cannot be declared; rules know it of every call"
        elif name not in facts:
            yield f"{spec.name}: nothing finds out the fact '{name}'; register a resolver for it, or take it out of policy_facts"


def _clashes(specs: Sequence[ToolSpec]) -> Iterator[str]:
    by_name: dict[str, int] = {}
    by_derived: dict[str, set[str]] = {}
    for spec in specs:
        by_name[spec.name] = by_name.get(spec.name, 0) + 1
        by_derived.setdefault(model_tool_name(spec.name), set()).add(spec.name)
    for name, count in by_name.items():
        if count > 1:
            yield f"{name}: declared {count} times"
    for derived, names in by_derived.items():
        if len(names) > 1:
            yield f"{' and '.join(sorted(names))} have one model-facing name, {derived}"
