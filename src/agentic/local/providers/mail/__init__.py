"""A mail provider on this machine, in the HTTP shape of Nylas v3: send, read back, grants, one-hour idempotency keys."""

from agentic.local.providers.mail.app import mail_app
from agentic.local.providers.mail.faults import Fault, Hold, Lost
from agentic.local.providers.mail.journal import StoreUnreadable
from agentic.local.providers.mail.messages import Attachment, Message, Outgoing, Participant
from agentic.local.providers.mail.server import MailServer
from agentic.local.providers.mail.store import Attempt, MailStore

__all__ = [
    "Attachment",
    "Attempt",
    "Fault",
    "Hold",
    "Lost",
    "MailServer",
    "MailStore",
    "Message",
    "Outgoing",
    "Participant",
    "StoreUnreadable",
    "mail_app",
]
