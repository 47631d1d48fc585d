"""Runs of workflows in Postgres. The statements stand in ``queries/workflow.sql``."""

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID, uuid4

from agentic.contract.canonical import digest
from agentic.contract.events import EventName
from agentic.services.runs.models import RunEnd
from agentic.services.runs.workflows import LedNode, NewContainer, NewNode, NodeView
from agentic.storage.database import Database
from agentic.storage.encoding import jsonb, text
from agentic.storage.queries import load_queries
from agentic.storage.run_columns import contract_column
from agentic.storage.run_rows import led_run


class PostgresWorkflowStore:
    """Implements ``WorkflowStore``."""

    def __init__(self, database: Database) -> None:
        self._db = database
        self._sql = load_queries("workflow")

    async def open(self, container: NewContainer, node: NewNode, *, lease_s: float) -> LedNode | NodeView:
        segment_id = uuid4()
        params = {
            **_container(container),
            **_node(container, node),
            "lease_s": lease_s,
            "segment_id": segment_id,
        }
        steps = ("open_container", "open_node", "take", "look")
        *_, taken, seen = await self._db.atomic([(self._sql[step], params) for step in steps])
        if taken is not None:
            led = led_run(taken, segment_id, definition={}, breakers={}, provider_failures=0)
            return LedNode(led=led, out_of_calls=bool(taken["out_of_calls"]))
        assert seen is not None  # the first statement made it, or found it
        return _view(seen)

    async def look(self, organization_id: UUID, container_id: UUID, node_id: UUID) -> NodeView | None:
        params = {"organization_id": organization_id, "container_id": container_id, "node_id": node_id}
        row = await self._db.one(self._sql["look"], params)
        return None if row is None else _view(row)

    async def end(self, organization_id: UUID, container_id: UUID, end: RunEnd) -> bool:
        params = {
            "organization_id": organization_id,
            "container_id": container_id,
            "state": end.state,
            "answer": text(end.answer),
            "partial_reason": text(end.partial_reason),
            "error_code": end.error_code,
        }
        row = await self._db.one(self._sql["end"], params)
        return row is not None and row["ended"] == 1

    async def sweep(self, *, limit: int) -> tuple[int, Sequence[UUID]]:
        row = await self._db.one(self._sql["sweep"], {"limit": limit, "event_name": str(EventName.RUN_DECIDED)})
        assert row is not None
        return row["ended"], row["nudges"]


def _container(container: NewContainer) -> dict[str, Any]:
    return {
        "organization_id": container.organization_id,
        "container_id": container.id,
        "request_key": container.request_key,
        "container_digest": digest([container.workflow, container.request_key]),
        "user_id": container.user_id,
        "lane": container.lane,
        "workflow": container.workflow,
        "definition": jsonb({"workflow": container.workflow, "tools": [spec.name for spec in container.contracts]}),
        "tools": jsonb([dict(tool) for tool in container.tools]),
        "ceilings": jsonb(container.ceilings.model_dump(mode="json")),
        "trust": str(container.trust),
        "deadline_s": container.deadline_s,
        "contracts": contract_column(container.organization_id, container.contracts),
    }


def _node(container: NewContainer, node: NewNode) -> dict[str, Any]:
    return {
        "node_id": node.id,
        "node": node.name,
        "node_key": f"{container.request_key}:{node.name}",
        "node_digest": node.digest,
    }


def _view(row: Mapping[str, Any]) -> NodeView:
    return NodeView(
        container_state=row["container_state"],
        container_error=row["container_error"],
        cancelled=row["cancelled"],
        overdue=row["overdue"],
        state=row["state"],
        error_code=row["error_code"],
        digest=row["request_digest"],
        due=row["due"],
        due_at=row["due_at"],
        within_s=row["within_s"],
        result=None if row["result"] is None else bytes(row["result"]),
    )
