"""A tool is one typed function plus one declaration.

``internal_tool`` and ``vendor_tool`` derive both schemas from the function's annotations and bind the function under a key that the
deployment owns; neither infers anything a declaration must say: connection, metering, limits, repeatability.
"""

import inspect
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal, get_type_hints

from pydantic import BaseModel, TypeAdapter, ValidationError

from agentic.contract.errors import ProgramFault, RegistryError
from agentic.contract.results import ErrorCode
from agentic.contract.trust import Trust
from agentic.services.tools.context import CallContext
from agentic.services.tools.handlers.retries import RetryBudget
from agentic.services.tools.models import HandlerBinding, IdempotencyClass, Risk, SideEffects, ToolSpec
from agentic.services.tools.ports import Previewer, Probe, ToolHandler

HandlerFunction = Callable[[CallContext, Any], Awaitable[Any]]


@dataclass(frozen=True, kw_only=True, slots=True)
class FunctionHandler:
    """A handler made of one coroutine function."""

    function: HandlerFunction

    async def execute(self, ctx: CallContext, args: BaseModel) -> Any:
        """Call the function."""
        return await self.function(ctx, args)


@dataclass(frozen=True, kw_only=True, slots=True)
class Tool:
    """A spec and the code of this deployment that stands behind it."""

    spec: ToolSpec
    handler: ToolHandler
    input_model: type[BaseModel]
    preview: Previewer | None = None
    probe: Probe | None = None
    refusals: Mapping[type[Exception], ErrorCode] = field(default_factory=lambda: MappingProxyType({}))
    """Exact exception classes of the domain that are answers, not faults. A base class never matches its leaves."""
    retries: RetryBudget | None = None
    """How often one call asks its vendor; ``None`` for once. The whole of it fits into ``timeout_s``."""


def internal_tool(name: str, description: str, **declared: Any) -> Callable[[HandlerFunction], Tool]:
    """Declare a tool over this deployment's own code.

    The decorated function is ``async def f(ctx: CallContext, args: Model) -> Output``; ``Model`` is a pydantic model whose fields are the
    arguments, ``Output`` any type pydantic can describe.

    Args:
        name: platform name, ``domain.verb``.
        description: what the model reads.
        **declared: the fields of ``ToolSpec`` that differ from their defaults, and ``preview``, ``probe``, ``refusals``, ``retries`` of
            ``Tool``.
            ``side_effects`` is ``"read"`` when unsaid; a write or send must say ``repeatable=False``.

    Raises:
        ProgramFault: the function's annotations do not describe its arguments and result.
        RegistryError: a field of the declaration is of no use, such as a limit under one; all of them are named. Rules across
            fields are checked when the tool is registered.
    """
    return _declare("internal", name, description, declared)


def vendor_tool(name: str, description: str, **declared: Any) -> Callable[[HandlerFunction], Tool]:
    """Declare a tool that calls an outside service. As ``internal_tool``; what it returns is external text unless declared otherwise."""
    return _declare("vendor", name, description, {"output_trust": Trust.EXTERNAL, **declared})


_DERIVED = ("input_schema", "output_schema", "binding")
"""What no declaration says beside its function, so that schema and handler cannot drift apart."""


def _declare(
    kind: Literal["internal", "vendor"], name: str, description: str, declared: dict[str, Any]
) -> Callable[[HandlerFunction], Tool]:
    beside = {key: declared.pop(key) for key in ("preview", "probe", "refusals", "retries") if key in declared}

    told = [
        f"{name}: {key} follows from the function and its annotations; leave it out"
        for key in _DERIVED
        if key in declared
    ]

    def wrap(function: HandlerFunction) -> Tool:
        if told:
            raise RegistryError(told)
        input_model, output = _annotations(function)
        said = declared.get("side_effects", SideEffects.READ)
        effects = SideEffects(said) if said in tuple(SideEffects) else SideEffects.READ
        fields = {
            "kind": kind,
            "idempotency": _default_class(effects),
            "risk": _default_risk(effects),
            **declared,
            "side_effects": said,
            "name": name,
            "description": description,
            "input_schema": input_model.model_json_schema(),
            "output_schema": TypeAdapter(output).json_schema(mode="serialization"),
            "binding": HandlerBinding(handler_key=name),
        }
        try:
            spec = ToolSpec.model_validate(fields)
        except ValidationError as error:
            raise RegistryError(_field_faults(name, error)) from error
        return Tool(
            spec=spec,
            handler=FunctionHandler(function=function),
            input_model=input_model,
            **beside,
        )

    return wrap


def _field_faults(name: str, error: ValidationError) -> list[str]:
    faults = error.errors(include_url=False, include_context=False, include_input=False)
    return [f"{name}: {'.'.join(map(str, fault['loc']))}: {fault['msg']}" for fault in faults]


def _default_class(effects: SideEffects) -> IdempotencyClass:
    if effects in (SideEffects.WRITE, SideEffects.SEND):
        return IdempotencyClass.NON_IDEMPOTENT
    return IdempotencyClass.READ_ONLY


def _default_risk(effects: SideEffects) -> Risk:
    return {SideEffects.WRITE: Risk.MEDIUM, SideEffects.SEND: Risk.HIGH}.get(effects, Risk.LOW)


def _annotations(function: HandlerFunction) -> tuple[type[BaseModel], Any]:
    where = f"{function.__module__}.{getattr(function, '__qualname__', function)}"
    if not inspect.iscoroutinefunction(function):
        raise ProgramFault(f"{where} must be a coroutine function: write 'async def'")
    parameters = list(inspect.signature(function).parameters)
    if len(parameters) != 2:
        raise ProgramFault(
            f"{where} must take two parameters, the call's context and its arguments; it takes {len(parameters)}"
        )
    try:
        hints = get_type_hints(function)
        output = get_type_hints(function, include_extras=True).get(
            "return"
        )  # with the bounds that 'Annotated' puts on it
    except NameError as error:
        raise ProgramFault(f"{where}: {error}; annotate with names that the module defines at its top level") from error
    model = hints.get(parameters[1])
    if not (isinstance(model, type) and issubclass(model, BaseModel)):
        raise ProgramFault(f"{where}: annotate '{parameters[1]}' with a pydantic model of the tool's arguments")
    if output is None or output is type(None):
        raise ProgramFault(f"{where}: annotate what it returns; the schema of the answer is derived from it")
    return model, output
