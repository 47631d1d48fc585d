"""Step 7 of a call: the account it uses, before anything is claimed (docs/connections.md)."""

import contextlib
from uuid import UUID

from agentic.contract.results import ErrorCode, Said
from agentic.services.tools.attempt import Prepared, Refused
from agentic.services.tools.connections import CONNECTION_ARGUMENT, Connection, ConnectionPort, Unconnected

_MAX_CHOICES = 10


async def connect(call: Prepared, port: ConnectionPort, *, on: UUID | None = None) -> None:
    """Give the call its connection, if its tool declares one.

    Args:
        call: its attempt keeps the connection, and the secrets of it that are known now.
        port: where accounts come from.
        on: the connection of an earlier attempt that may have had the effect. A repeat on another account would be a second one.

    Raises:
        Refused: none may be used; no claim is taken.
        ProgramFault: the vault is locked.
    """
    provider = call.spec.connection
    if provider is None:
        return
    call.at.connection = None
    found = await port.resolve(
        organization_id=call.at.inv.organization_id, provider=provider, connection_id=on or _named(call)
    )
    if isinstance(found, Unconnected):
        raise _refused(call, found)
    call.at.connection = Connection(found, used=call.at.used)
    call.at.attributes["connection.id"] = str(found.id)


async def connect_probe(call: Prepared, port: ConnectionPort, *, on: UUID | None) -> None:
    """As ``connect``, for a call that is only asked about: without its account the probe cannot tell, and an operator is asked.

    Raises:
        ProgramFault: the vault is locked; whoever has its key asks later.
    """
    with contextlib.suppress(Refused):
        await connect(call, port, on=on)


def _named(call: Prepared) -> UUID | None:
    """The connection that the arguments choose, where the tool lets them."""
    if not _lets_choose(call):
        return None
    value = call.arguments.get(CONNECTION_ARGUMENT)
    if value is None:
        return None
    try:
        return UUID(str(value))
    except ValueError:
        raise Refused(ErrorCode.INVALID_INPUT, detail=f"/{CONNECTION_ARGUMENT}: not the id of a connection") from None


def _lets_choose(call: Prepared) -> bool:
    properties = call.spec.input_schema.get("properties")
    return isinstance(properties, dict) and CONNECTION_ARGUMENT in properties


def _refused(call: Prepared, why: Unconnected) -> Refused:
    if why.code is not ErrorCode.CONNECTION_AMBIGUOUS:
        return Refused(why.code)
    if not _lets_choose(call):
        return Refused(
            why.code, detail=f"The tool takes no {CONNECTION_ARGUMENT}, so only one account may be connected."
        )
    said = Said(by="domain", text="\n".join(why.choices[:_MAX_CHOICES]))
    return Refused(why.code, detail=f"/{CONNECTION_ARGUMENT}: name one of these.", said=said)
