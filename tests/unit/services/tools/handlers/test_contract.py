"""What a handler may say, and that it never words a result itself."""

import ast
from pathlib import Path

import pytest

from agentic.contract.errors import ProgramFault
from agentic.contract.results import ErrorCode
from agentic.services.tools.handlers.errors import DefiniteRefusal, RetryableUpstreamError, UpstreamUnavailableError
from agentic.services.tools.outcomes import PIPELINE_CODES, mends_by_waiting

ROOT = Path(__file__).resolve().parents[5]
HANDLERS = [
    path
    for folder in ("src/agentic/services/tools/handlers", "src/agentic/local/demo", "examples")
    for path in sorted((ROOT / folder).rglob("*.py"))
]


@pytest.mark.guarantee("B3")
@pytest.mark.parametrize("path", HANDLERS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_no_handler_constructs_a_tool_error(path: Path) -> None:
    made = {
        node.func.id if isinstance(node.func, ast.Name) else node.func.attr
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name | ast.Attribute)
    }
    assert made.isdisjoint({"ToolError", "ToolResult", "refusal"})


def test_a_vendor_handler_constructs_no_tool_error_the_invoker_maps_its_neutral_exception() -> None:
    busy = RetryableUpstreamError("throttled", retry_after_s=2, external_text="slow down")
    assert (busy.code, busy.retryable, busy.retry_after_s) == (ErrorCode.RETRYABLE_UPSTREAM, True, 2)
    away = UpstreamUnavailableError("no such host")
    assert (away.code, away.retryable) == (ErrorCode.UNAVAILABLE, False)


@pytest.mark.guarantee("D3")
@pytest.mark.parametrize("code", sorted(PIPELINE_CODES))
def test_a_handler_cannot_say_what_only_the_invoker_concludes(code: ErrorCode) -> None:
    with pytest.raises(ProgramFault, match="the invoker's to conclude"):
        DefiniteRefusal("no", code=code)


@pytest.mark.guarantee("J6")
@pytest.mark.parametrize("code", sorted(set(ErrorCode) - PIPELINE_CODES))
def test_whether_a_refused_call_may_come_again_follows_from_its_code(code: ErrorCode) -> None:
    assert DefiniteRefusal("no", code=code).retryable is mends_by_waiting(code)
