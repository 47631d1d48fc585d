"""Step 1 of a call: one value of the arguments, or words the model can act on. Pure (N2)."""

from difflib import get_close_matches

from pydantic import BaseModel, ValidationError

from agentic.contract.canonical import canonical
from agentic.contract.json_types import JsonObject
from agentic.contract.results import ErrorCode
from agentic.services.tools.arguments import InvalidArguments, parse_arguments
from agentic.services.tools.attempt import Attempt, Refused
from agentic.services.tools.declarations import Tool
from agentic.services.tools.models import MAX_NAME_LENGTH, ToolSpec, model_tool_name
from agentic.services.tools.schema_words import path_words
from agentic.services.tools.schemas import validator_for


def arguments_of(text: str | None, spec: ToolSpec, tool: Tool | None) -> tuple[JsonObject, bytes, BaseModel | None]:
    """One value of the arguments, its canonical bytes, and the live tool's own view of it.

    Args:
        text: the model's own text.
        spec: the frozen contract, which they are validated on.
        tool: the live tool; ``None`` when this deployment has it no more.

    Raises:
        Refused: they do not fit, or are too many for one call.
    """
    try:
        arguments = parse_arguments(text, spec.input_schema)
        body = canonical(arguments)
        model = _typed(body, spec, tool)
    except InvalidArguments as error:
        raise Refused(ErrorCode.INVALID_INPUT, detail=str(error)) from error
    except ValidationError as error:
        raise Refused(ErrorCode.INVALID_INPUT, detail=_places(error, spec)) from error
    if spec.batch_argument is not None and spec.max_batch_size is not None:
        items = arguments.get(spec.batch_argument)
        if isinstance(items, list) and len(items) > spec.max_batch_size:
            raise Refused(
                ErrorCode.BATCH_TOO_LARGE, detail=f"/{spec.batch_argument} takes at most {spec.max_batch_size} items."
            )
    return arguments, body, model


def close_names(at: Attempt) -> str | None:
    """The names the model may have meant, of those it was shown."""
    shown = [model_tool_name(name) for name in at.inv.tools]
    close = get_close_matches(model_tool_name(at.call.tool).lower()[:MAX_NAME_LENGTH], shown, n=3, cutoff=0.5)
    return f"Close names: {', '.join(close)}." if close else None


def _typed(body: bytes, spec: ToolSpec, tool: Tool | None) -> BaseModel | None:
    """The live tool's own view of the arguments. A tool of another contract may not take them, which says nothing about the call."""
    if tool is None:
        return None
    try:
        return tool.input_model.model_validate_json(body)
    except ValidationError:
        if tool.spec.contract_hash != spec.contract_hash:
            return None  # the journal answers first, and then that the tool has changed
        raise


def _places(error: ValidationError, spec: ToolSpec) -> str:
    """Paths and rules of a validation failure, never the values nor names of the model's own."""
    names = validator_for(spec.input_schema).names
    faults = error.errors(include_url=False, include_context=False, include_input=False)
    return "; ".join(f"/{path_words(fault['loc'], names)}: {fault['type']}" for fault in faults[:5])
