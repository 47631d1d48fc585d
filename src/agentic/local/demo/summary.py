"""What came of it, as one value: whether it ended as promised, and the JSON line."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from agentic.local.crash_points import Left, left
from agentic.local.demo.options import DemoOptions


@dataclass(frozen=True, kw_only=True, slots=True)
class Told:
    """What every demo ends with."""

    run_id: str
    status: str

    def line(self, error: str | None = None) -> str:
        """The machine-readable last line.

        Args:
            error: the sentence of a demo that did not come out as promised.
        """
        said = asdict(self)
        return json.dumps(
            said if error is None else {**said, "status": "error", "run_state": self.status, "error": error}
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class Summary(Told):
    """The end of one demo.

    Attributes:
        emails_sent: emails of this run that the provider really sent.
        attempts: how often ``email.send`` was tried.
        rejected: a person rejected the email.
        answered_from_key: the provider answered the last attempt from its memory of the key.
        model_error: what the model provider said when it was last asked; ``None`` when it answered.
        seconds_to_card: from the start to the approval card; ``None`` when no call asked.
        cost: as a decimal, in the meter's currency.
        killed: a process was killed at the point that was asked for.
    """

    model: str
    emails_sent: int
    approvals: int
    rejected: bool
    uncertain: int
    attempts: int
    answered_from_key: bool
    partial_reason: str | None
    error_code: str | None
    model_error: str | None
    cost: str
    seconds_to_card: float | None
    seconds: float
    killed: bool


def error_line(error: str, run_id: str | None) -> str:
    """The machine-readable last line of a demo that has no run to count, or none that is over."""
    return json.dumps({"status": "error", "error": error, **({} if run_id is None else {"run_id": run_id})})


def summary(
    tree: Mapping[str, Any],
    emails: Sequence[Mapping[str, Any]],
    *,
    model: str,
    seconds_to_card: float | None,
    seconds: float,
    killed: bool = False,
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
        rejected=any(approval.get("status") == "rejected" for approval in tree["approvals"]),
        uncertain=len(tree["uncertain"]),
        attempts=max((int(span["attributes"]["call.attempt"]) for span in sends), default=0),
        answered_from_key=any(_output(span).get("answered_from_key") is True for span in sends),
        partial_reason=run["partial_reason"],
        error_code=run["error_code"],
        model_error=provider_error(tree),
        cost=str(tree["cost"]["cost"]),
        seconds_to_card=None if seconds_to_card is None else round(seconds_to_card, 2),
        seconds=round(seconds, 2),
        killed=killed,
    )


def broken_promise(end: Summary, options: DemoOptions) -> str | None:
    """What did not come out as the demo promises; ``None`` when all of it did."""
    if end.status != "succeeded":
        code = f" ({end.error_code})" if end.error_code else ""
        reason = f", because the model provider said: {end.model_error}" if end.model_error else ""
        return f"the run ended {end.status}{code}{reason}"
    if end.rejected and end.emails_sent == 0:
        return None if end.uncertain == 0 else "an outcome is unknown, though the call was rejected"
    if options.crash_at is not None and not end.killed:
        return f"no process came to the point {options.crash_at}, so none was killed"
    leaves = Left.NOTHING if options.crash_at is None else left(options.crash_at)
    unknown = leaves in (Left.MARKED, Left.DONE) and not options.vendor_key
    emails = 0 if unknown and leaves is Left.MARKED else 1
    if end.emails_sent != emails:
        return f"{end.emails_sent} emails were sent instead of {emails}"
    if unknown:
        return None if end.uncertain == 1 else "the unknown outcome did not reach the operator's queue"
    if end.uncertain != 0:
        return "an outcome is unknown, though it could be found out"
    if leaves is Left.DONE and not (end.attempts > 1 and end.answered_from_key):
        return "the second attempt was not answered under the key"
    return None


def provider_error(tree: Mapping[str, Any]) -> str | None:
    """What went wrong when the model was last asked; ``None`` when it answered, or was not asked yet."""
    asked = [span for span in tree["spans"] if span.get("kind") == "llm" and span["state"] == "closed"]
    if not asked or asked[-1]["status"] != "error":
        return None
    return str((asked[-1]["attributes"] or {}).get("error") or asked[-1]["code"] or "no reason")


def _output(span: Mapping[str, Any]) -> Mapping[str, Any]:
    text = span.get("output")
    output = json.loads(text) if isinstance(text, str) else text
    return output if isinstance(output, dict) else {}
