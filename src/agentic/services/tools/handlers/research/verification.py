"""What is known of an address: one closed state, made of a provider's words. Pure."""

from enum import StrEnum
from typing import Final


class Verification(StrEnum):
    """How far an address may be relied on."""

    VERIFIED = "verified"
    """Its mailbox was seen to exist."""
    UNVERIFIABLE = "unverifiable"
    """The provider calls it invalid, or one that is thrown away: do not write to it."""
    ACCEPTS_ALL = "accepts_all"
    """Its server takes every address, so nothing was proved of this one; it may well be right."""
    UNVERIFIED = "unverified"
    """Nobody could tell, or nobody tried."""
    NOT_FOUND = "not_found"
    """There is no address."""


_OF_STATUS: Final = {
    "valid": Verification.VERIFIED,
    "invalid": Verification.UNVERIFIABLE,
    "disposable": Verification.UNVERIFIABLE,
    "accept_all": Verification.ACCEPTS_ALL,
    "webmail": Verification.UNVERIFIED,
    "unknown": Verification.UNVERIFIED,
}
_ROLES: Final = frozenset(
    (
        *("abuse", "accounts", "admin", "billing", "careers", "compliance", "contact", "customerservice", "enquiries"),
        *("feedback", "finance", "hello", "help", "hi", "hr", "info", "inquiries", "it", "jobs", "legal", "mail"),
        *(
            "marketing",
            "media",
            "news",
            "newsletter",
            "noreply",
            "no-reply",
            "office",
            "orders",
            "partners",
            "postmaster",
        ),
        *("pr", "press", "privacy", "recruiting", "sales", "security", "service", "support", "team", "webmaster"),
    )
)


def verification(status: str | None, *, accept_all: bool | None) -> Verification:
    """The state of an address that was found.

    The provider's status outranks ``accept_all``: a domain that takes every address still tells the truth when it names one
    invalid. A word we do not know proves nothing.
    """
    if status is None:
        return Verification.ACCEPTS_ALL if accept_all else Verification.UNVERIFIED
    return _OF_STATUS.get(status, Verification.UNVERIFIED)


def is_role(email: str) -> bool:
    """Whether an address is a function's, such as ``info@``, and not a person's."""
    return email.partition("@")[0].partition("+")[0].lower() in _ROLES
