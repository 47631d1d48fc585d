"""One delivery of a provider, from its bytes to the answer: verified, read, matched, and stored as one transaction (T3, W2).

If the process dies before the commit, nothing was stored and the provider delivers again; after it, the row is the truth, the outbox
resends the event, and a further delivery is a duplicate.
"""

import hashlib
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from uuid import UUID

from agentic.contract.deliveries import DropReason, Receipt, Unreadable
from agentic.contract.delivery_body import object_of
from agentic.contract.errors import Conflict, NotFound, RetryLater
from agentic.contract.events import Event
from agentic.services.provider_jobs.models import Delivered, JobReport
from agentic.services.provider_jobs.ports import DeliveryStore, JobProvider

_log = logging.getLogger(__name__)


class WebhookIntake:
    """Takes deliveries for the providers of a deployment."""

    def __init__(
        self,
        *,
        store: DeliveryStore,
        providers: Sequence[JobProvider],
        send: Callable[[Sequence[Event]], Awaitable[None]],
    ) -> None:
        self._store = store
        self._providers = {provider.name: provider for provider in providers}
        self._send = send

    def knows(self, provider: str) -> bool:
        """Whether the deployment has such a provider."""
        return provider in self._providers

    async def receive(self, provider: str, job: str, raw_body: bytes, headers: Mapping[str, str]) -> Receipt:
        """Take one delivery.

        Args:
            provider: as the address names it.
            job: our id of the job, as the address names it. No secret: the signature says whether to believe the body.
            raw_body: as it came, at most as long as the edge lets through.
            headers: names in lower case.

        Raises:
            NotFound: there is no such provider.
            StorageUnavailable: nothing was stored; the provider delivers again.
        """
        adapter = self._providers.get(provider)
        if adapter is None:
            raise NotFound("there is no such provider here")
        if not adapter.verify(raw_body, headers):
            await self._forged(provider)
            return Receipt.NOT_SIGNED
        try:
            report = adapter.read(object_of(raw_body))
        except Unreadable as problem:
            _log.warning("a signed delivery of %s is not what it documents: %s", provider, problem)
            await self._store.count_drop(provider, DropReason.UNREADABLE)
            return Receipt.UNREADABLE
        await self.take(provider, job, report, body_hash=hashlib.sha256(raw_body).hexdigest())
        return Receipt.TAKEN

    async def take(self, provider: str, job: str, report: JobReport, *, body_hash: str) -> DropReason | None:
        """Store what a provider surely said; why it changed nothing, ``None`` when it ended the job."""
        delivered = await self._stored(provider, job, report, body_hash)
        if delivered.dropped is not None:
            await self._store.count_drop(provider, delivered.dropped)
        else:
            await self._send(delivered.events)
        return delivered.dropped

    async def _stored(self, provider: str, job: str, report: JobReport, body_hash: str) -> Delivered:
        job_id = _uuid(job)
        if job_id is None:
            return Delivered(dropped=DropReason.UNKNOWN_JOB)
        try:
            return await self._store.deliver(provider, job_id, report, body_hash=body_hash)
        except Conflict:  # another job has this id of the provider's
            return Delivered(dropped=DropReason.JOB_MISMATCH)

    async def _forged(self, provider: str) -> None:
        """Count it. Whoever forges learns nothing of a database that is away."""
        try:
            await self._store.count_drop(provider, DropReason.BAD_SIGNATURE)
        except RetryLater:
            _log.warning("a delivery to %s with no good signature could not be counted", provider)


def _uuid(written: str) -> UUID | None:
    try:
        return UUID(written)
    except ValueError:
        return None
