"""What the vault holds, as the MCP servers of one organization are told it: two peers that do not know each other."""

from uuid import UUID

from pydantic import SecretStr

from agentic.contract.errors import NotFound
from agentic.services.connections.credential_reader import CredentialReader, CredentialUnusable
from agentic.services.mcp.authentication import Credential
from agentic.services.mcp.failures import RemoteFailure, Trouble


class OrganizationCredentials:
    """The vault of one organization, for what its MCP servers are told. A reference is the id of a connection."""

    def __init__(self, reader: CredentialReader, organization_id: UUID) -> None:
        self._reader = reader
        self._organization_id = organization_id

    async def resolve(self, reference: str) -> Credential:
        """The credential as it is now.

        Raises:
            RemoteFailure: there is no such connection, or it may not be used.
        """
        try:
            found = await self._reader.read(self._organization_id, UUID(reference))
        except (CredentialUnusable, NotFound) as refused:
            raise RemoteFailure(Trouble.UNAUTHORIZED, str(refused)) from refused
        return Credential(secret=SecretStr(found.value), client_id=found.client_id)
