"""Step 7 of a call: the account it uses, before anything is claimed and before a person is asked (docs/connections.md, ADR 0042).

A call that was given an account keeps it: the one that an attempt used whose effect may have left, the one that a person approved.
"""

import contextlib
from collections.abc import Sequence
from itertools import accumulate
from uuid import UUID

from agentic.contract.results import ErrorCode, Said
from agentic.services.tools.attempt import Attempt, Prepared, Refused
from agentic.services.tools.connections import CONNECTION_ARGUMENT, Connection, ConnectionPort, Unconnected
from agentic.services.tools.result_boundary import MAX_SAID_CHARS, said_text

_MAX_CHOICES = 10


async def connect(call: Prepared, port: ConnectionPort) -> None:
    """Give the call its connection, if its tool declares one: the one it had, else the one it names, else the only one there is.

    Args:
        call: its attempt keeps the connection, and the secrets of it that are known now.
        port: where accounts come from.

    Raises:
        Refused: none may be used; no claim is taken.
        ProgramFault: the vault is locked.
    """
    await _connect(call, port, given=_given(call.at))


async def connect_probe(call: Prepared, port: ConnectionPort, *, on: UUID | None) -> None:
    """As ``connect``, for a call that is only asked about: without its account the probe cannot tell, and an operator is asked.

    Args:
        on: the account it was claimed for.

    Raises:
        ProgramFault: the vault is locked; whoever has its key asks later.
    """
    with contextlib.suppress(Refused):
        await _connect(call, port, given=on)


async def _connect(call: Prepared, port: ConnectionPort, *, given: UUID | None) -> None:
    provider = call.spec.connection
    if provider is None:
        return
    call.at.connection = None
    found = await port.resolve(
        organization_id=call.at.inv.organization_id, provider=provider, connection_id=given or _named(call)
    )
    if isinstance(found, Unconnected):
        # one that was given was there: a model that named none is not told that it named a wrong one
        gone = given is not None and found.code is ErrorCode.NOT_FOUND
        raise Refused(ErrorCode.CONNECTION_REVOKED) if gone else _refused(call, found)
    call.at.connection = Connection(found, used=call.at.used)
    call.at.attributes["connection.id"] = str(found.id)


def _given(at: Attempt) -> UUID | None:
    """The account this call was given before. A repeat in another one would be a second effect, and nobody approved it there."""
    earlier = None if at.stale is None else at.stale.row.connection_id
    return earlier or (None if at.approval is None else at.approval.connection_id)


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
    listed = _listed(why.choices)
    left = len(why.choices) - len(listed)
    more = f" {left} more are not listed; ask the user for the id of one." if left else ""
    said = Said(by="domain", text=said_text("\n".join(listed), call.at.secrets))
    return Refused(why.code, detail=f"/{CONNECTION_ARGUMENT}: name one of these.{more}", said=said)


def _listed(choices: Sequence[str]) -> Sequence[str]:
    """As many as are said whole."""
    lengths = accumulate(len(choice) + 1 for choice in choices[:_MAX_CHOICES])
    return choices[: sum(length <= MAX_SAID_CHARS for length in lengths)]
