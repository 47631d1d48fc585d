"""One event of an account, from its bytes to the answer: verified, read, matched to its connections, stored as one statement (T3, W2).

The account that the signed body names finds the connections and so the organizations: its address says nothing. If the process dies
before the commit, nothing was stored and the provider delivers again; after it, the outbox resends, and a further delivery is a duplicate.
"""

import hashlib
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence

from agentic.contract.deliveries import DropReason, Receipt, Unreadable
from agentic.contract.errors import NotFound, RetryLater
from agentic.contract.events import Event
from agentic.services.connections.account_events import AccountEvent, AccountEvents, AccountEventStore, Told

_log = logging.getLogger(__name__)


class AccountEventIntake:
    """Takes events of accounts for the providers of a deployment."""

    def __init__(
        self,
        *,
        store: AccountEventStore,
        providers: Sequence[AccountEvents],
        send: Callable[[Sequence[Event]], Awaitable[None]],
    ) -> None:
        self._store = store
        self._providers = {provider.name: provider for provider in providers}
        self._send = send

    def knows(self, provider: str) -> bool:
        """Whether the deployment takes events of such a provider."""
        return provider in self._providers

    def challenge(self, provider: str, query: Mapping[str, str]) -> str | None:
        """What to answer a provider that makes sure of the address; ``None`` when this is no such question.

        Raises:
            NotFound: there is no such provider.
        """
        return self._provider(provider).challenge(query)

    async def receive(self, provider: str, raw_body: bytes, headers: Mapping[str, str]) -> Receipt:
        """Take one delivery.

        Args:
            provider: as the address names it.
            raw_body: as it came, at most as long as the edge lets through.
            headers: names in lower case.

        Raises:
            NotFound: there is no such provider.
            StorageUnavailable: nothing was stored; the provider delivers again.
        """
        adapter = self._provider(provider)
        if not adapter.verify(raw_body, headers):
            await self._forged(provider)
            return Receipt.NOT_SIGNED
        try:
            event = adapter.read(raw_body)
        except Unreadable as problem:
            _log.warning("a signed event of %s is not what it documents: %s", provider, problem)
            await self._store.count_drop(provider, DropReason.UNREADABLE)
            return Receipt.UNREADABLE
        if event is None:
            await self._store.count_drop(provider, DropReason.NOT_USED)
            return Receipt.TAKEN
        told = await self._told(provider, event, hashlib.sha256(raw_body).hexdigest())
        if told.dropped is not None:
            await self._store.count_drop(provider, told.dropped)
        else:
            await self._send(told.events)
        return Receipt.TAKEN

    async def _told(self, provider: str, event: AccountEvent, body_hash: str) -> Told:
        if not event.account:  # no fact at all is one that every connection has
            return Told(dropped=DropReason.UNKNOWN_ACCOUNT)
        return await self._store.tell(provider, event, body_hash=body_hash)

    def _provider(self, name: str) -> AccountEvents:
        if name not in self._providers:
            raise NotFound("there is no such provider here")
        return self._providers[name]

    async def _forged(self, provider: str) -> None:
        """Count it. Whoever forges learns nothing of a database that is away."""
        try:
            await self._store.count_drop(provider, DropReason.BAD_SIGNATURE)
        except RetryLater:
            _log.warning("an event of %s with no good signature could not be counted", provider)
