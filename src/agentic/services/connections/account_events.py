"""What a provider tells of a connected account, and what those who take it need: of the provider and of a store."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from agentic.contract.deliveries import DropReason
from agentic.contract.events import Event


@dataclass(frozen=True, kw_only=True, slots=True)
class AccountEvent:
    """One event, read from a body that was verified.

    Attributes:
        delivery_id: the same for every delivery of one and the same event.
        type: as the provider calls it, such as ``message.created``.
        account: facts that the connections of this account have, such as ``{"grant_id": …}``; empty when it names no account.
        at: when it happened, in Unix seconds; ``None`` when it does not say.
        ends_consent: the account has to be connected again.
        object_id: the provider's id of what it is about, such as a message; ``None`` when it names none.
        truncated: the provider left out part of what it is about.
    """

    delivery_id: str
    type: str
    account: Mapping[str, str]
    at: int | None = None
    ends_consent: bool = False
    object_id: str | None = None
    truncated: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Told:
    """What became of an event.

    Attributes:
        dropped: why it changed nothing; ``None`` when a connection was told of it.
        events: committed with it and to be sent: one for each connection of the account.
    """

    dropped: DropReason | None
    events: tuple[Event, ...] = ()


class AccountEvents(Protocol):
    """One provider's events of accounts: how they are told from anybody else's, and what they say.

    Attributes:
        name: provider key of the connections, and the last part of the address.
    """

    name: str

    def challenge(self, query: Mapping[str, str]) -> str | None:
        """What to answer a question by which the provider makes sure of the address; ``None`` when it asked none."""
        ...

    def verify(self, raw_body: bytes, headers: Mapping[str, str]) -> bool:
        """Whether the provider sent exactly these bytes; never raises, whatever the headers hold (T3)."""
        ...

    def read(self, raw_body: bytes) -> AccountEvent | None:
        """What a verified body says; ``None`` for an event nobody does anything with.

        Raises:
            Unreadable: it is not what the provider documents.
        """
        ...


class AccountEventStore(Protocol):
    """Where events of accounts arrive."""

    async def tell(self, provider: str, event: AccountEvent, *, body_hash: str) -> Told:
        """All that one event does to every connection of its account, in one statement; the same one twice does it once (W2)."""
        ...

    async def count_drop(self, provider: str, reason: DropReason) -> None:
        """One more delivery that changed nothing, committed when this returns. Holds nothing of it."""
        ...
