"""Settling what an ended job costs: once, whatever became of the run that submitted it (M1).

Line, stamp and hold are one statement: if the process dies before it, the sweep asks again; after it, there is nothing to do.
"""

import logging
from uuid import UUID

import sentry_sdk

from agentic.contract.errors import RetryLater
from agentic.services.provider_jobs.models import Settlement
from agentic.services.provider_jobs.ports import SettlingStore

_log = logging.getLogger(__name__)


class CannotBeCounted(RetryLater):
    """No price covers what the provider reported. Setting one (``agentic prices set``) lets the next attempt settle it."""


class JobSettling:
    """Settles jobs."""

    def __init__(self, store: SettlingStore) -> None:
        self._store = store

    async def settle(self, organization_id: UUID, job_id: UUID) -> bool:
        """Settle a job; ``False`` when it is settled already, or has not ended.

        Raises:
            CannotBeCounted: nothing was written, and what was held stays held.
            StorageUnavailable: likewise, or it was written; again tells.
        """
        settled = await self._store.settle(organization_id, job_id)
        if settled is Settlement.UNCOUNTABLE:
            raise CannotBeCounted(
                f"no price covers what job {job_id} cost; see 'agentic jobs show {job_id}' and set one with 'agentic prices set'"
            )
        return settled is Settlement.SETTLED

    async def give_up(self, organization_id: UUID, job_id: UUID) -> None:
        """Report, once a job, that every attempt failed. It stays unsettled, where the sweep and a person find it."""
        if not await self._store.settle_failed(organization_id, job_id):
            return
        message = f"the cost of provider job {job_id} could not be settled; its money stays held"
        _log.warning(message)
        sentry_sdk.capture_message(message, level="error")
