"""What a person may choose about the demo."""

from dataclasses import dataclass
from pathlib import Path

from agentic.local.crash_points import CrashPoint
from agentic.local.home import DEFAULT_FOLDER


@dataclass(frozen=True, kw_only=True, slots=True)
class DemoOptions:
    """The options of ``agentic demo``.

    Attributes:
        yes: answer the approval with yes instead of asking.
        json: end with one JSON object as the last line of standard output.
        crash_at: kill the process that has the run in hand at this point; ``None`` kills nobody.
        vendor_key: give ``email.send`` the provider's idempotency key; ``False`` shows a tool without one.
        enrich: tell the story of work that a provider finishes later, in place of the email's.
        mcp: tell the story of somebody else's tool server, in place of the email's.
        csv: the person's own CRM export; ``None`` takes the one that ships with the package.
        folder: where the database, the mailbox and the logs are kept.
    """

    yes: bool = False
    json: bool = False
    crash_at: CrashPoint | None = None
    vendor_key: bool = True
    enrich: bool = False
    mcp: bool = False
    csv: Path | None = None
    folder: Path = DEFAULT_FOLDER
