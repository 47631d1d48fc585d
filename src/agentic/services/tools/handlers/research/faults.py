"""What ends a call to a research vendor with a raise, because somebody must repair this deployment or our reading of the vendor.

    VendorFault                 the run is tried again by whoever leads it, and the span keeps which of these it was
    ├── CredentialRefused           give the deployment another key
    ├── BalanceSpent                pay the vendor; never our own ceiling, which refuses before a call runs
    ├── RequestRefused              the vendor does not take what we send; our reading of its contract is wrong
    ├── AnswerUnreadable            it answered something its contract does not have
    │   └── AnswerTooLarge              the answer was cut off at what is read of one
    └── DryRun                      synthetic data would have stood in for the vendor's

None of them is an answer for a model. Texts name vendor, status and place, never what was asked or answered (B2).
"""

from agentic.services.tools.handlers.errors import HandlerError


class VendorFault(HandlerError):
    """The vendor, or what we know of it, needs a person."""


class CredentialRefused(VendorFault):
    """The vendor does not accept the key, or the key may not do this."""

    costs_nothing = True


class BalanceSpent(VendorFault):
    """The vendor's account has no money or credits left."""

    costs_nothing = True


class RequestRefused(VendorFault):
    """The vendor refused the shape of the request."""

    costs_nothing = True


class AnswerUnreadable(VendorFault):
    """The vendor's answer cannot be decoded."""


class AnswerTooLarge(AnswerUnreadable):
    """The answer was longer than what is read of one, so the rest of it is missing."""


class DryRun(VendorFault):
    """The client makes up its answers; nothing of it may reach a model or the books."""

    costs_nothing = True
