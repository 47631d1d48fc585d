"""What the demo's processes must agree on, handed to workers through their environment: never the command line, it holds a key."""

import os
from pathlib import Path
from typing import Self

from pydantic import ValidationError

from agentic.contract.errors import ProgramFault
from agentic.contract.values import Value
from agentic.local.crash_points import CrashPoint
from agentic.local.demo.enrichment.people import Sought

VARIABLE = "AGENTIC_DEMO_SETTINGS"
EMAIL_TIMEOUT_S = 20.0
REHEARSAL = "rehearsal"
"""The name the rehearsal's model is registered under."""


class Target(Value):
    """The person the story is about, picked from the contacts."""

    name: str
    email: str
    company: str
    domain: str


class MailAccount(Value):
    """The mailbox that emails are sent from."""

    url: str
    """Origin of the provider, such as ``http://127.0.0.1:40123``."""
    key: str
    grant: str


class JobsAccount(Value):
    """The account with the provider that finishes work later.

    Attributes:
        url: origin of the provider.
        key: sends requests and signs callbacks.
        callback_url: origin of the API, where it reports.
    """

    url: str
    key: str
    callback_url: str


class Crash(Value):
    """Where workers are to die.

    Attributes:
        point: the place.
        armed: the file that names the run, for as long as they are to.
    """

    point: CrashPoint
    armed: Path


class DemoSettings(Value):
    """Settings of one demo.

    Attributes:
        model: a model string, or the name of the rehearsal.
        mail: where emails go.
        vendor_key: whether ``email.send`` uses the provider's idempotency key.
        email_timeout_s: how long one send may take.
        target: whom the email's story is about; ``None`` when nobody in the contacts has an email.
        jobs: where addresses are looked up.
        people: whose addresses are.
        crash: where workers die; ``None`` for nowhere.
    """

    model: str
    mail: MailAccount
    vendor_key: bool
    email_timeout_s: float
    target: Target | None
    jobs: JobsAccount
    people: tuple[Sought, ...] = ()
    crash: Crash | None = None

    @classmethod
    def from_environment(cls) -> Self:
        """The settings this process was started with.

        Raises:
            ProgramFault: there are none, or they cannot be read.
        """
        try:
            return cls.model_validate_json(os.environ[VARIABLE])
        except KeyError:
            raise ProgramFault(f"{VARIABLE} is not set; 'agentic demo' sets it for the workers it starts") from None
        except ValidationError as error:
            fields = ", ".join(".".join(str(part) for part in fault["loc"]) for fault in error.errors())
            raise ProgramFault(f"{VARIABLE} cannot be read ({fields}); let 'agentic demo' set it") from None
