"""What came of it, as one value: whether it ended as promised, and the JSON line."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agentic.local.demo.options import DemoOptions


@dataclass(frozen=True, kw_only=True, slots=True)
class Summary:
    """The end of one demo.

    Attributes:
        emails_sent: emails of this run that the provider really sent.
        attempts: how often ``email.send`` was tried.
        answered_from_key: the provider answered the last attempt from its memory of the key.
        seconds_to_card: from the start to the approval card; ``None`` when no call asked.
        cost: as a decimal, in the meter's currency.
    """

    run_id: str
    status: str
    model: str
    emails_sent: int
    approvals: int
    uncertain: int
    attempts: int
    answered_from_key: bool
    partial_reason: str | None
    error_code: str | None
    cost: str
    seconds_to_card: float | None
    seconds: float

    def line(self) -> str:
        """The machine-readable last line."""
        fields = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return json.dumps(fields)


def summary(
    tree: Mapping[str, Any],
    emails: Sequence[Mapping[str, Any]],
    *,
    model: str,
    seconds_to_card: float | None,
    seconds: float,
) -> Summary:
    """Count the tree and the mailbox."""
    run = tree["run"]
    sends = [
        span for span in tree["spans"] if span["name"] == "email.send" and "call.attempt" in (span["attributes"] or {})
    ]
    return Summary(
        run_id=str(run["id"]),
        status=str(run["state"]),
        model=model,
        emails_sent=len(emails),
        approvals=len(tree["approvals"]),
        uncertain=len(tree["uncertain"]),
        attempts=max((int(span["attributes"]["call.attempt"]) for span in sends), default=0),
        answered_from_key=any(_output(span).get("answered_from_key") is True for span in sends),
        partial_reason=run["partial_reason"],
        error_code=run["error_code"],
        cost=str(tree["cost"]["cost"]),
        seconds_to_card=None if seconds_to_card is None else round(seconds_to_card, 2),
        seconds=round(seconds, 2),
    )


def broken_promise(end: Summary, options: DemoOptions) -> str | None:
    """What did not come out as the demo promises; ``None`` when all of it did."""
    if end.status != "succeeded":
        return f"the run ended {end.status}{f' ({end.error_code})' if end.error_code else ''}"
    if end.emails_sent != 1:
        return f"{end.emails_sent} emails were sent instead of one"
    if not options.crash:
        return None if end.uncertain == 0 else "an outcome is unknown, though nothing crashed"
    if options.vendor_key:
        return (
            None if end.attempts > 1 and end.answered_from_key else "the second attempt was not answered under the key"
        )
    return None if end.uncertain == 1 else "the unknown outcome did not reach the operator's queue"


def _output(span: Mapping[str, Any]) -> Mapping[str, Any]:
    text = span.get("output")
    output = json.loads(text) if isinstance(text, str) else text
    return output if isinstance(output, dict) else {}
