"""Research on the web and of people, by four vendors: seven metered reads, each one call and one line of usage."""

from agentic.services.tools.handlers.research.faults import (
    AnswerTooLarge,
    AnswerUnreadable,
    BalanceSpent,
    CredentialRefused,
    DryRun,
    RequestRefused,
    VendorFault,
)
from agentic.services.tools.handlers.research.keys import ResearchKeys, ResearchOrigins
from agentic.services.tools.handlers.research.prices import ResearchPrices
from agentic.services.tools.handlers.research.tools import research_tools
from agentic.services.tools.handlers.research.verification import Verification

__all__ = [
    "AnswerTooLarge",
    "AnswerUnreadable",
    "BalanceSpent",
    "CredentialRefused",
    "DryRun",
    "RequestRefused",
    "ResearchKeys",
    "ResearchOrigins",
    "ResearchPrices",
    "VendorFault",
    "Verification",
    "research_tools",
]
