"""The email tools of a deployment. Joined here and nowhere else."""

from collections.abc import Sequence

from agentic.services.tools.declarations import Tool
from agentic.services.tools.handlers.email.nylas import US_ORIGIN
from agentic.services.tools.handlers.email.read_email import read_email
from agentic.services.tools.handlers.email.search_emails import search_emails
from agentic.services.tools.handlers.email.send_email import ATTEMPT_S, TIMEOUT_S, send_email
from agentic.services.tools.handlers.retries import RetryBudget

READS = RetryBudget(attempts=2, attempt_timeout_s=20, backoff_s=0.5, max_wait_s=5)
_DECIDING_S = 4
"""Seconds for deciding and for the connection, so that the last question still fits."""


def email_tools(
    *,
    origin: str = US_ORIGIN,
    facts: Sequence[str] = (),
    reads: RetryBudget = READS,
    send_timeout_s: float = TIMEOUT_S,
    send_attempt_s: float = ATTEMPT_S,
) -> list[Tool]:
    """``email.send``, ``email.search`` and ``email.read``, for connections of the provider ``nylas``.

    Args:
        origin: the region of the deployment's application at Nylas.
        facts: names of facts that rules may ask about a send beside ``recipient_is_new`` and ``new_recipients``, each found out by a
            resolver of the app that takes an ``Email``.
        reads: how often a read asks while Nylas is busy.
        send_timeout_s: seconds of one send, its repeats among them.
        send_attempt_s: seconds of one request of a send.
    """
    timeout_s = reads.total_s + _DECIDING_S
    return [
        send_email(origin, facts=facts, timeout_s=send_timeout_s, attempt_s=send_attempt_s),
        search_emails(origin, retries=reads, timeout_s=timeout_s),
        read_email(origin, retries=reads, timeout_s=timeout_s),
    ]
