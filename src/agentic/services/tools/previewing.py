"""The line a person reads before deciding, under the five rules of a preview (A6).

It writes, sends and spends nothing, reads under the same principal, runs under the call's deadline, gives one non-empty line of at
most 512 bytes, and its failure never loses the approval.
"""

import asyncio
import logging
from collections.abc import Sequence

from agentic.services.tools.cancellation import asked_to_stop
from agentic.services.tools.context import CallContext
from agentic.services.tools.declarations import Tool
from agentic.services.tools.redaction import redact_text, secret_values

MAX_PREVIEW_BYTES = 512
_log = logging.getLogger(__name__)


async def preview_line(tool: Tool, ctx: CallContext, args: object) -> str | None:
    """The normalised line, or ``None`` when the tool has no preview or its preview broke a rule."""
    if tool.preview is None:
        return None
    try:
        async with asyncio.timeout(ctx.remaining_s):
            line = await tool.preview(ctx, args)  # type: ignore[arg-type]
    except (Exception, asyncio.CancelledError) as error:
        if isinstance(error, asyncio.CancelledError) and asked_to_stop():
            raise
        # whatever it is, the approval is filed without the line
        _log.warning(
            "the preview of %s failed (%s); the approval shows the arguments instead",
            tool.spec.name,
            type(error).__name__,
        )
        return None
    return _normalised(tool.spec.name, line, secret_values(ctx.secrets))


def _normalised(tool: str, line: object, secrets: Sequence[str]) -> str | None:
    text = " ".join(redact_text(line, secrets).split()) if isinstance(line, str) else ""
    size = len(text.encode("utf-8", "replace"))
    if not text or size > MAX_PREVIEW_BYTES or "\0" in text:
        _log.warning(
            "the preview of %s is not one line of 1 to %d bytes; the approval shows the arguments instead",
            tool,
            MAX_PREVIEW_BYTES,
        )
        return None
    return text
