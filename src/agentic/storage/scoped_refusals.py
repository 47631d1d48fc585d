"""What the database's refusal of a scoped query is called, whichever way it was asked. By SQLSTATE, so that both ways agree."""

from typing import Final

from agentic.contract.errors import AgenticError, ProgramFault, StorageUnavailable
from agentic.services.tools.scoped_db import KeyTaken, ReferenceMissing

_PASSES: Final = frozenset({"08", "40", "53", "55", "57", "58"})
"""Classes of what time mends: connection, rollback in favour of another, resources, locks, an operator, the system."""
_OF_VALUES: Final = frozenset({"21", "22", "23"})
"""Classes whose messages quote values, which stay out of ours."""


def refusal(table: str, *, sqlstate: str | None, constraint: str | None, message: str | None) -> AgenticError:
    """The error to raise.

    Args:
        table: what was asked.
        sqlstate: five characters, or ``None`` when the database named none.
        constraint: the rule that was broken, where one was.
        message: the database's own line.
    """
    state = sqlstate or ""
    if state == "23505":
        return KeyTaken(table, constraint or "unknown")
    if state == "23503":
        return ReferenceMissing(table, constraint or "unknown")
    if state[:2] in _PASSES:
        return StorageUnavailable(f"the database gave up on {table} ({state}); it is safe to run it again")
    if state[:2] in _OF_VALUES:
        rule = f"by the rule {constraint}" if constraint else "for their form"
        return ProgramFault(f"{table}: the database refuses the values {rule} ({state})")
    return ProgramFault(
        f"{table}: the database refuses the query: {message or 'without a reason'} ({state or 'no code'})"
    )
