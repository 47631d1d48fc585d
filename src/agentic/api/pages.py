"""Places of a listing as text that goes out and comes back, the same for the API and the command line. Pure."""

from datetime import UTC, datetime
from uuid import UUID

from agentic.services.runs.models import Place


def cursor_of(place: Place | None) -> str | None:
    """A place as text that needs no quoting in a URL; ``None`` for the end."""
    if place is None:
        return None
    moment = place.created_at.astimezone(UTC).replace(tzinfo=None).isoformat()
    return f"{moment}Z_{place.run_id}"


def place_of(cursor: str) -> Place:
    """The place of a cursor.

    Raises:
        ValueError: it is none that a listing gave out.
    """
    moment, _, run_id = cursor.partition("_")
    created_at = datetime.fromisoformat(moment)
    if created_at.tzinfo is None:
        raise ValueError("the time has no zone")
    return Place(created_at=created_at, run_id=UUID(run_id))
