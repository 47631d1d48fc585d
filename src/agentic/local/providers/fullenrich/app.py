"""FullEnrich's bulk enrichment as it documents it: a batch is taken at once and reported later, to an address of its own.

Callbacks are signed over the exact bytes, which no re-serializer would make again: odd order, spaces, a line feed at the end.
"""

import asyncio
import hashlib
import hmac
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

import httpx

from agentic.local.providers.stand_in import Answer, Received, StandIn

PATH = "/api/v2/contact/enrich/bulk"
KEY_CHECK_PATH = "/api/v2/account/keys/verify"
SIGNATURE = "X-Signature-SHA1"
TRIES = 5
AGAIN_S = 60.0
_FIELDS = frozenset({"contact.work_emails", "contact.phones", "contact.personal_emails"})
_MAX_ROWS, _MAX_CUSTOM_KEYS, _MAX_CUSTOM_CHARS = 100, 10, 100


@dataclass(kw_only=True, slots=True)
class Batch:
    """A batch that was taken.

    Attributes:
        status: as the vendor writes it, upper case.
        credits: what it cost so far; ``None`` leaves ``cost`` out.
    """

    id: str
    name: str
    webhook_url: str | None
    rows: list[dict[str, Any]]
    status: str = "IN_PROGRESS"
    credits: int | None = 0
    found: dict[str, str] = field(default_factory=dict)
    """Addresses by the ``ref`` of their row."""

    def body(self) -> bytes:
        """The report as it is sent."""
        told: dict[str, Any] = {"data": [self._row(row) for row in self.rows], "status": self.status}
        if self.credits is not None:
            told["cost"] = {"credits": self.credits}
        return json.dumps({**told, "name": self.name, "id": self.id}, indent=1).encode() + b" \n"

    def _row(self, row: Mapping[str, Any]) -> dict[str, Any]:
        email = self.found.get(row["custom"].get("ref", ""))
        mail = None if email is None else {"email": email, "status": "DELIVERABLE"}
        info = {"most_probable_work_email": mail, "work_emails": [mail] if mail else [], "phones": []}
        return {"custom": row["custom"], "contact_info": info, "input": {"first_name": row["first_name"]}}


class FullEnrichStandIn(StandIn):
    """The vendor.

    Attributes:
        batches: what was taken, by id. A batch ends with ``finish`` and is reported with ``deliver``.
    """

    name = "fullenrich"

    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.batches: dict[str, Batch] = {}

    @property
    def last(self) -> Batch:
        """The batch that was taken last."""
        return list(self.batches.values())[-1]

    def answer(self, request: Received) -> Answer:
        """Take a batch, tell of one, or say what is wrong."""
        if not self.knows(request):
            return _refusal(401, "error.api.key", "The key is not valid")
        if request.method == "POST" and request.path == PATH:
            return self._take(request.json)
        if request.method == "GET" and request.path.startswith(f"{PATH}/"):
            return self._tell(request.path.removeprefix(f"{PATH}/"))
        if (request.method, request.path) == ("GET", KEY_CHECK_PATH):
            return Answer(json={"workspace_id": "00000000-0000-4000-8000-00000000000f"})
        return _refusal(404, "error.not_found", "There is no such endpoint")

    def take(self, body: Mapping[str, Any]) -> Batch:
        """Take a batch, also one whose answer was lost."""
        batch_id = str(uuid4())
        batch = Batch(id=batch_id, name=body["name"], webhook_url=body.get("webhook_url"), rows=body["data"])
        self.batches[batch_id] = batch
        return batch

    def finish(self, batch: Batch, status: str = "FINISHED", *, found: Mapping[str, str] | None = None) -> bytes:
        """End a batch; the report. Each address that was found costs one credit."""
        batch.status = status
        batch.found = dict(found or {})
        batch.credits = len(batch.found)
        return batch.body()

    def signed(self, body: bytes, *, key: str | None = None) -> dict[str, str]:
        """The headers of a callback with this body."""
        digest = hmac.new((key or self._key).encode(), body, hashlib.sha1).hexdigest()
        return {SIGNATURE: digest, "Content-Type": "application/json"}

    async def deliver(self, batch: Batch, *, tries: int = TRIES, again_s: float = AGAIN_S) -> bool:
        """Post the report to the batch's address, again while it is not taken; whether it was."""
        if batch.webhook_url is None:
            return False
        body = batch.body()
        async with httpx.AsyncClient(trust_env=False) as client:
            for left in reversed(range(tries)):
                try:
                    reply = await client.post(batch.webhook_url, content=body, headers=self.signed(body))
                except httpx.TransportError:
                    taken = False
                else:
                    taken = reply.is_success
                if taken:
                    return True
                if left:
                    await asyncio.sleep(again_s)
        return False

    def _take(self, body: Any) -> Answer:
        fault = _fault(body)
        if fault is not None:
            return _refusal(400, f"error.enrichment.{fault}", "The batch is not valid")
        return Answer(json={"enrichment_id": self.take(body).id})

    def _tell(self, batch_id: str) -> Answer:
        batch = self.batches.get(batch_id)
        if batch is None:
            return _refusal(404, "error.enrichment.not_found", "There is no such enrichment")
        if batch.status == "IN_PROGRESS":
            return _refusal(400, "error.enrichment.in_progress", "It is not ready")
        return Answer(status=402 if batch.status == "CREDITS_INSUFFICIENT" else 200, body=batch.body())


def _refusal(status: int, code: str, message: str) -> Answer:
    return Answer(status=status, json={"code": code, "message": message})


def _fault(body: Any) -> str | None:
    if not isinstance(body, dict) or not body.get("name"):
        return "name.empty"
    url = body.get("webhook_url")
    if url is not None and not str(url).startswith("http"):
        return "webhook_url"
    rows = body.get("data")
    if not isinstance(rows, list) or not 1 <= len(rows) <= _MAX_ROWS:
        return "data.empty"
    return next((fault for fault in map(_row_fault, rows) if fault is not None), None)


def _row_fault(row: Mapping[str, Any]) -> str | None:
    fields: Sequence[str] = row.get("enrich_fields") or ()
    if not fields:
        return "enrich_fields.empty"
    if not set(fields) <= _FIELDS:
        return "enrich_field.value"
    if "linkedin_url" not in row:
        for name in ("first_name", "last_name"):
            if not row.get(name):
                return f"{name}.empty"
        if not row.get("domain") and not row.get("company_name"):
            return "domain.empty"
    custom = row.get("custom") or {}
    if len(custom) > _MAX_CUSTOM_KEYS:
        return "custom.key.exceeded"
    if any(not isinstance(value, str) or len(value) > _MAX_CUSTOM_CHARS for value in custom.values()):
        return "custom.value.exceeded"
    return None
