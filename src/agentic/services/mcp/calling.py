"""The code behind a remote tool: its arguments go out as they were validated, its answer comes in as a stranger's data."""

from collections.abc import Mapping
from typing import Any, Final, assert_never

from pydantic import BaseModel

from agentic.contract.errors import ProgramFault
from agentic.contract.results import ErrorCode
from agentic.contract.trust import Trust
from agentic.services.mcp.asking import Asking, RunMarks
from agentic.services.mcp.results import Answered, ToolFailed, Unreadable, read_result
from agentic.services.mcp.servers import Connection, RemoteServer
from agentic.services.tools.context import CallContext
from agentic.services.tools.handlers.errors import DefiniteRefusal, OutcomeUnknown, ToolGone
from agentic.services.tools.models import RemoteBinding, ToolSpec

_CALL: Final = "tools/call"


class RemoteToolHandler:
    """The code behind one tool that a server published.

    Args:
        server: where it runs.
        spec: as the run was shown it; the class in it decides what may be sent again.
        schemas: of structured answers, by remote name, as the server declared them.
    """

    def __init__(
        self,
        server: RemoteServer,
        spec: ToolSpec,
        *,
        marks: RunMarks,
        schemas: Mapping[str, Mapping[str, Any] | None] | None = None,
    ) -> None:
        if not isinstance(spec.binding, RemoteBinding):
            raise ProgramFault(f"{spec.name} is not a tool of a remote server")
        self._binding = spec.binding
        self._remote_name = spec.binding.remote_name
        self._asking = Asking(server, spec.idempotency, marks=marks, still_offered=self._gone)
        self._output_schema = (schemas or {}).get(self._remote_name)

    async def execute(self, ctx: CallContext, args: BaseModel) -> Any:
        """Make the call.

        Raises:
            DefiniteRefusal: it surely had no effect, or it is one that has none.
            OutcomeUnknown: the request left and nobody can say what became of it.
        """
        ctx.lower_trust(Trust.EXTERNAL)
        params = {"name": self._remote_name, "arguments": args.model_dump(mode="json", exclude_unset=True)}
        raw = await self._asking.answer(ctx, _CALL, params)
        result = read_result(raw, keep=ctx.save_artifact, output_schema=self._output_schema)
        match result:
            case Answered(data=data):
                return data
            case ToolFailed(words=words, not_applied=not_applied):
                if not_applied or self._asking.harmless:
                    raise DefiniteRefusal(
                        f"{self._asking.server_id}: the tool failed", code=ErrorCode.UPSTREAM_ERROR, external_text=words
                    )
                raise OutcomeUnknown(
                    f"{self._asking.server_id}: the tool failed without saying that nothing was done",
                    external_text=words,
                )
            case Unreadable(why=why):
                if self._asking.reads:
                    raise DefiniteRefusal(f"{self._asking.server_id}: {why}", code=ErrorCode.INVALID_OUTPUT)
                raise OutcomeUnknown(f"{self._asking.server_id}: answered, and {why}")
            case _ as never:
                assert_never(never)

    def _gone(self, connection: Connection) -> ToolGone | None:
        declared = connection.catalog.tool(self._remote_name)
        if declared is None:
            return ToolGone(f"{self._asking.server_id} offers {self._remote_name} no more", changed=False)
        if declared.declaration_hash != self._binding.declaration_hash:
            return ToolGone(f"{self._asking.server_id} declares {self._remote_name} in another way now", changed=True)
        return None
