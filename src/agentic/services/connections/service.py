"""What people do with connections: add, list, check, connect again, revoke; and what the deployment does: rotate its keys."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID, uuid4

from agentic.contract.errors import Conflict, NotFound, ProgramFault
from agentic.services.connections.envelope import VaultKeys
from agentic.services.connections.models import (
    Binding,
    ClientAuth,
    ConnectionState,
    Kind,
    NewConnection,
    StoredConnection,
)
from agentic.services.connections.oauth import check_endpoint
from agentic.services.connections.ports import ConnectionStore
from agentic.services.connections.secrets import ApiKey, Secret, check, decoded, encoded, values
from agentic.services.tools.handlers.email.nylas import GRANT_FACT, NYLAS, is_mailbox
from agentic.services.tools.handlers.http import FRAMING

_PAGE = 100
_MAX_LABEL = 200
_MAX_ACCOUNT = 1000
_PROVIDER = re.compile(r"[a-z][a-z0-9_.-]{0,63}")
_HEADER = re.compile(r"[A-Za-z0-9-]{1,64}")
_OTHERWISE_USED = FRAMING | {"accept", "accept-encoding", "content-encoding", "content-type"}


@dataclass(frozen=True, kw_only=True, slots=True)
class TokenEndpoint:
    """Where tokens are obtained, and how the client names itself there."""

    url: str
    client_auth: ClientAuth = ClientAuth.BASIC
    resource: str | None = None
    scopes: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Checked:
    """What can be said of a connection without asking anybody."""

    connection: StoredConnection
    opens: bool
    """Its secret is there and the vault's keys open it."""
    usable: bool
    """A call may use it now, and obtains a token first where that is due."""
    note: str | None
    """What is wrong, in words for an operator."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Rotated:
    """What a rotation did."""

    key_id: str
    """The key that wraps everything now but what is named below."""
    rewrapped: int
    unreadable: tuple[UUID, ...]
    """Connections whose secret no key here opens; they stay as they are."""


class ConnectionService:
    """Acts on the connections of organizations. Asks nobody's leave: whoever reaches it decides who may."""

    def __init__(self, *, store: ConnectionStore, keys: VaultKeys) -> None:
        self._store = store
        self._keys = keys

    async def add(
        self,
        organization_id: UUID,
        provider: str,
        secret: Secret,
        *,
        label: str,
        account: Mapping[str, str] | None = None,
        header: str | None = None,
        endpoint: TokenEndpoint | None = None,
        created_by: UUID | None = None,
    ) -> StoredConnection:
        """Store a connection. Nobody is asked whether its credential is good; its first use tells.

        Args:
            provider: provider key, as tools declare it.
            secret: sealed before anything is written.
            label: what people call it; one of each at a provider.
            account: facts that anybody of the organization may see.
            header: the header that carries an API key bare; ``None`` for ``Authorization: Bearer``.
            endpoint: where tokens come from, for OAuth.
            created_by: the person who connects it.

        Raises:
            ValueError: something of it is of no use; the message does not quote the secret.
            VaultLocked: the vault has no key. Nothing is written.
            Conflict: there is a connection of this provider and label.
        """
        kind = _kind(secret)
        if (endpoint is None) != (kind is Kind.API_KEY):
            raise ValueError("tokens come from a token endpoint, and an API key from none")
        fault = None if endpoint is None else check_endpoint(endpoint.url)
        if fault is not None:
            raise ValueError(fault)
        check(kind, secret)
        _check_words(provider, label, header, account or {})
        _check_unspoken(secret, label, account or {})
        _check_mailbox(provider, account or {})
        binding = Binding(
            organization_id=organization_id,
            id=uuid4(),
            provider=provider,
            kind=kind,
            header=None if header is None else header.lower(),
            token_endpoint=None if endpoint is None else endpoint.url,
            client_auth=None if endpoint is None else endpoint.client_auth,
            resource=None if endpoint is None else endpoint.resource,
        )
        return await self._store.add(
            NewConnection(
                binding=binding,
                label=label,
                account=dict(account or {}),
                scopes=() if endpoint is None else endpoint.scopes,
                sealed=self._keys.seal(encoded(secret), binding.bound()),
                created_by=created_by,
            )
        )

    async def reconnect(self, organization_id: UUID, connection_id: UUID, secret: Secret) -> StoredConnection:
        """Put a new secret in the place of the old one; the connection is connected again, and stays the same account's.

        Raises:
            NotFound: no such connection in the organization.
            Conflict: it is revoked, which is for good.
            ValueError: the secret does not go with the connection.
            VaultLocked: the vault has no key. Nothing is written.
        """
        row = await self._read(organization_id, connection_id)
        check(row.binding.kind, secret)
        sealed = self._keys.seal(encoded(secret), row.binding.bound())
        stored = await self._store.reconnect(organization_id, connection_id, sealed)
        if stored is None:
            raise Conflict(f"connection {connection_id} is revoked; add a new one")
        return stored

    async def list(self, organization_id: UUID) -> Sequence[StoredConnection]:
        """Every connection of an organization, the newest first."""
        return await self._store.list(organization_id)

    async def check(self, organization_id: UUID, connection_id: UUID) -> Checked:
        """Say whether a call could use a connection. The vendor is not asked.

        Raises:
            NotFound: no such connection in the organization.
        """
        row = await self._read(organization_id, connection_id)
        if row.sealed is None:
            return Checked(connection=row, opens=False, usable=False, note="it is revoked, and its secret forgotten")
        try:
            decoded(row.binding.kind, self._keys.open(row.sealed, row.binding.bound()))
        except ProgramFault as fault:
            return Checked(connection=row, opens=False, usable=False, note=str(fault))
        if row.state is ConnectionState.NEEDS_REAUTH:
            return Checked(connection=row, opens=True, usable=False, note=f"connect it again: {row.reauth_reason}")
        due = row.fresh_for_s is not None and row.fresh_for_s <= 0
        note = "the next call obtains a token" if due else None
        return Checked(connection=row, opens=True, usable=True, note=note)

    async def revoke(self, organization_id: UUID, connection_id: UUID) -> StoredConnection:
        """Disconnect an account for good and forget its secret. A call that has it in hand already ends as it ends.

        Raises:
            NotFound: no such connection in the organization.
        """
        revoked = await self._store.revoke(organization_id, connection_id)
        return revoked if revoked is not None else await self._read(organization_id, connection_id)

    async def rotate(self) -> Rotated:
        """Put every data key of the database under the first master key. It may be repeated, and interrupted anywhere.

        Raises:
            VaultLocked: the vault has no key.
        """
        current = self._keys.current
        rewrapped, unreadable, after = 0, [], None
        while page := await self._store.sealed_otherwise(current, after=after, limit=_PAGE):
            for row in page:
                after = row.id
                if row.sealed is None:
                    continue
                try:
                    sealed = self._keys.rewrap(row.sealed, row.binding.bound())
                except ProgramFault:
                    unreadable.append(row.id)
                    continue
                # one that moved meanwhile was sealed by whoever moved it; a process with older keys is met by the next rotation
                rewrapped += await self._store.rewrap(row.organization_id, row.id, version=row.version, sealed=sealed)
        return Rotated(key_id=current, rewrapped=rewrapped, unreadable=tuple(unreadable))

    async def _read(self, organization_id: UUID, connection_id: UUID) -> StoredConnection:
        row = await self._store.read(organization_id, connection_id)
        if row is None:
            raise NotFound(f"connection {connection_id} does not exist in this organization")
        return row


def _check_words(provider: str, label: str, header: str | None, account: Mapping[str, str]) -> None:
    if not _PROVIDER.fullmatch(provider):
        raise ValueError(
            "a provider key is lower-case letters, digits, '_', '.' and '-', at most 64, and begins with a letter"
        )
    if not 1 <= len(label) <= _MAX_LABEL or not _is_shown(label):
        raise ValueError(f"a label has 1 to {_MAX_LABEL} printable characters, without blanks around them")
    if header is not None and not _HEADER.fullmatch(header):
        raise ValueError("a header's name holds characters HTTP does not allow")
    if header is not None and header.lower() in _OTHERWISE_USED:
        raise ValueError(f"the header {header} says something else of a request and carries no key")
    if sum(len(name) + len(value) for name, value in account.items()) > _MAX_ACCOUNT:
        raise ValueError(f"the facts of an account have at most {_MAX_ACCOUNT} characters")
    if not all(_is_shown(text) for fact in account.items() for text in fact):
        raise ValueError("a fact of an account has a name and a value, both printable and without blanks around them")


def _is_shown(text: str) -> bool:
    """Whether people read the text as it is: not empty, and nothing in it that moves or hides what stands beside it."""
    return bool(text) and text.isprintable() and text == text.strip()


def _check_unspoken(secret: Secret, label: str, account: Mapping[str, str]) -> None:
    if any(value in text for value in values(secret) for text in (label, *account, *account.values())):
        raise ValueError("the label or a fact of the account holds the secret, and both are shown to people")


def _check_mailbox(provider: str, account: Mapping[str, str]) -> None:
    """Before a person approves an email that no mailbox of that name could send."""
    if provider == NYLAS and not is_mailbox(account.get(GRANT_FACT, "me")):
        raise ValueError(f"the fact {GRANT_FACT} is no id of a mailbox at Nylas")


def _kind(secret: Secret) -> Kind:
    if isinstance(secret, ApiKey):
        return Kind.API_KEY
    return Kind.OAUTH_CLIENT if secret.refresh_token is None else Kind.OAUTH_REFRESH
