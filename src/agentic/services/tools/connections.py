"""The account a call uses: which one it is, and its credential, which no model, row, log or repr ever holds (T2, B2).

Which account is meant and how its credential is kept is the port's; when it is asked, and for which call, is ``connecting``'s.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Never, Protocol
from uuid import UUID

from agentic.contract.errors import ProgramFault
from agentic.contract.results import ErrorCode
from agentic.services.tools.handlers.errors import DefiniteRefusal

CONNECTION_ARGUMENT = "connection_id"
"""The public argument by which a model chooses among the accounts of its organization, where a tool declares it."""
ADDRESS_FACTS = ("address", "email")
"""The facts of an account by which people know it, the first one that it has."""
_MAX_NAME_CHARS = 120


@dataclass(frozen=True, kw_only=True, slots=True)
class Presented:
    """A credential as it goes over the wire now."""

    header: str
    value: str = field(repr=False)
    bare: str = field(repr=False)
    """The credential without what the header puts before it, such as ``Bearer``."""


class Credential(Protocol):
    """What stands behind a connection for the length of one call."""

    @property
    def secrets(self) -> tuple[str, ...]:
        """Every secret value of it that is known by now."""
        ...

    async def present(self) -> Presented:
        """The credential, renewed first when it is about to expire.

        Raises:
            ConnectionUnusable: a person must connect the account again, or it was disconnected.
            RetryableUpstreamError: it could not be renewed just now.
        """
        ...

    async def rejected(self) -> DefiniteRefusal:
        """Note that the vendor took it for no valid credential; the refusal that says so."""
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class Account:
    """A connection that a call may use."""

    id: UUID
    provider: str
    label: str
    shown: Mapping[str, str]
    """Facts of the account that anybody of the organization may see, such as its address."""
    credential: Credential = field(repr=False)


def account_name(label: str, facts: Mapping[str, str]) -> str:
    """An account as people and models read it: its label, and the address that its facts name, such as ``Ada (ada@fjord.example)``."""
    address = next((facts[name] for name in ADDRESS_FACTS if facts.get(name)), None)
    short = _clipped(label)
    return short if address is None or address in short else f"{short} ({_clipped(address)})"


@dataclass(frozen=True, kw_only=True, slots=True)
class Unconnected:
    """No connection may be used."""

    code: ErrorCode
    """``connection_required``, ``_expired`` (also of a secret that does not open), ``_revoked``, ``_ambiguous``; or ``not_found``."""
    choices: tuple[str, ...] = ()
    """Which ones there are, for ``connection_ambiguous``: id and name of each."""


class ConnectionPort(Protocol):
    """Where accounts come from."""

    async def resolve(
        self, *, organization_id: UUID, provider: str, connection_id: UUID | None
    ) -> Account | Unconnected:
        """The account of a call, its credential decrypted.

        Args:
            organization_id: a connection of another one is as good as none (T1).
            provider: provider key that the tool declares.
            connection_id: the one that is meant; ``None`` for the only one there is.

        Raises:
            ProgramFault: the vault is locked: it lacks the key the secret was sealed under.
        """
        ...


class NoConnections:
    """A deployment without a vault: nothing is connected."""

    async def resolve(
        self, *, organization_id: UUID, provider: str, connection_id: UUID | None
    ) -> Account | Unconnected:
        """Nothing is connected."""
        return Unconnected(code=ErrorCode.CONNECTION_REQUIRED)


class Connection:
    """What a handler gets as ``ctx.connection``. Whatever it hands out is removed from the call's rows and answers (B2).

    Args:
        account: what it stands for.
        used: takes the secret values that this call has used.
    """

    __slots__ = ("_account", "_used")

    def __init__(self, account: Account, *, used: Callable[[tuple[str, ...]], None]) -> None:
        self._account = account
        self._used = used
        used(account.credential.secrets)

    @property
    def id(self) -> UUID:
        """The connection's id."""
        return self._account.id

    @property
    def provider(self) -> str:
        """Provider key."""
        return self._account.provider

    @property
    def label(self) -> str:
        """What the organization calls it."""
        return self._account.label

    @property
    def account(self) -> Mapping[str, str]:
        """Facts of the account that may be shown."""
        return self._account.shown

    @property
    def name(self) -> str:
        """As a person reads it; see ``account_name``."""
        return account_name(self.label, self.account)

    def without_credential(self) -> "Connection":
        """The same account for whoever may name it and not act in it, such as a preview (A6)."""
        return Connection(replace(self._account, credential=_NoCredential()), used=self._used)

    async def authorize(self) -> Mapping[str, str]:
        """The header that authenticates a request now; the ``auth`` of ``GovernedClient``. Raises as ``Credential.present``."""
        presented = await self._present()
        return {presented.header: presented.value}

    async def reveal(self) -> str:
        """The credential itself, for a client that takes it in another way. Raises as ``Credential.present``."""
        return (await self._present()).bare

    async def rejected(self) -> DefiniteRefusal:
        """What to raise when the vendor rejects the credential (401): nothing happened, and the next call uses a new one or none.

        A key that is rejected, and a token that is although this call has just obtained it, must be connected again by a person.
        """
        return await self._account.credential.rejected()

    async def _present(self) -> Presented:
        try:
            return await self._account.credential.present()
        finally:
            self._used(self._account.credential.secrets)

    def __repr__(self) -> str:
        return f"<Connection {self._account.provider} {self._account.id}>"

    def __reduce__(self) -> Never:
        raise TypeError("a connection holds a credential and is neither pickled nor copied")


class _NoCredential:
    """Stands where nothing may be authenticated."""

    secrets: tuple[str, ...] = ()

    async def present(self) -> Presented:
        raise ProgramFault(
            "a preview names its account and acts in none; use the credential in the handler or the probe"
        )

    async def rejected(self) -> DefiniteRefusal:
        raise ProgramFault("a preview has no credential that a vendor could reject")


def _clipped(text: str) -> str:
    return text if len(text) <= _MAX_NAME_CHARS else text[: _MAX_NAME_CHARS - 1] + "…"
