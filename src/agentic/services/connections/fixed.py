"""Accounts named in code, for tests of products and for demonstrations: nothing is stored, nothing expires."""

from collections.abc import Mapping
from uuid import UUID, uuid5

from agentic.contract.results import ErrorCode
from agentic.services.tools.connections import Account, Presented, Unconnected
from agentic.services.tools.handlers.errors import ConnectionUnusable, DefiniteRefusal

STAND_IN_SECRET = "stand-in-credential"  # noqa: S105 - opens nothing
"""What everything is connected with where nobody says more."""


class FixedConnections:
    """One connection a provider in every organization; implements ``ConnectionPort``.

    Args:
        secrets: the credential by provider key; ``None`` connects whatever a tool names, with ``STAND_IN_SECRET``.
    """

    def __init__(self, secrets: Mapping[str, str] | None = None) -> None:
        self._secrets = secrets

    async def resolve(
        self, *, organization_id: UUID, provider: str, connection_id: UUID | None
    ) -> Account | Unconnected:
        """The provider's connection; its id is the same in every process."""
        secret = STAND_IN_SECRET if self._secrets is None else self._secrets.get(provider)
        if secret is None:
            return Unconnected(code=ErrorCode.CONNECTION_REQUIRED)
        own = uuid5(organization_id, provider)
        if connection_id not in (None, own):
            return Unconnected(code=ErrorCode.NOT_FOUND)
        return Account(id=own, provider=provider, label=provider, shown={}, credential=_Fixed(secret))


class _Fixed:
    def __init__(self, secret: str) -> None:
        self._secret = secret

    @property
    def secrets(self) -> tuple[str, ...]:
        return (self._secret,)

    async def present(self) -> Presented:
        return Presented(header="authorization", value=f"Bearer {self._secret}", bare=self._secret)

    async def rejected(self) -> DefiniteRefusal:
        return ConnectionUnusable("the vendor rejects the credential that the code names")
