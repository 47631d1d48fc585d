"""The words of a run's tree, in their colours, and payloads on one line. Pure."""

from rich.text import Text

from agentic.cli.safe_text import safe_line

MAX_PAYLOAD_CHARS = 400
"""Of one payload line; ``--json`` has it whole."""
_STYLES = {
    "succeeded": "green",
    "completed": "green",
    "confirmed": "green",
    "approved": "green",
    "allow": "green",
    "released": "yellow",
    "held": "yellow",
    "queued": "yellow",
    "waits for a person": "yellow",
    "require_approval": "yellow",
    "pending": "yellow",
    "parked": "yellow",
    "running": "yellow",
    "open": "yellow",
    "outcome_unknown": "magenta",
    "uncertain": "magenta",
    "lost": "magenta",
}


def styled(word: str) -> Text:
    """A word of ours in its colour; red for one that names a failure."""
    return Text(safe_line(word), style=_STYLES.get(word, "red"))


def short(text: str) -> str:
    """Text of anybody, on one line and not too long."""
    line = safe_line(text)
    return line if len(line) <= MAX_PAYLOAD_CHARS else line[: MAX_PAYLOAD_CHARS - 1] + "…"
