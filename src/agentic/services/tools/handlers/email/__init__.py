"""An organization's own mailboxes over Nylas: one send that a person approves, and two reads whose words come from outside."""

from agentic.services.tools.handlers.email.nylas import EU_ORIGIN, NYLAS, US_ORIGIN, nylas_origin
from agentic.services.tools.handlers.email.send_email import NEW_RECIPIENTS, RECIPIENT_IS_NEW, Email
from agentic.services.tools.handlers.email.tools import email_tools

__all__ = [
    "EU_ORIGIN",
    "NEW_RECIPIENTS",
    "NYLAS",
    "RECIPIENT_IS_NEW",
    "US_ORIGIN",
    "Email",
    "email_tools",
    "nylas_origin",
]
