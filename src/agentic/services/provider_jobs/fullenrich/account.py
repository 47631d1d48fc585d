"""A deployment's account with FullEnrich. Its API key signs the callbacks too, so a rotation has to overlap."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Self
from uuid import UUID

from agentic.contract.errors import ProgramFault
from agentic.services.tools.handlers.egress import Origin

ORIGIN = "https://app.fullenrich.com"
BULK_PATH = "/api/v2/contact/enrich/bulk"
CALLBACK_PATH = "/api/v1/agentic/webhooks/fullenrich"
API_ORIGIN = "AGENTIC_API_ORIGIN"
"""Where the outside reaches this deployment's API."""
_MIN_KEY_CHARS = 8


def fullenrich_origin(environment: Mapping[str, str] = os.environ) -> str:
    """The provider's own address, or the stand-in's that ``FULLENRICH_ORIGIN`` holds."""
    return environment.get("FULLENRICH_ORIGIN") or ORIGIN


@dataclass(frozen=True, kw_only=True, slots=True)
class FullEnrichAccount:
    """The account.

    Attributes:
        key: sends requests, and its callbacks are believed.
        earlier_keys: replaced ones whose callbacks are still believed; take them out an hour after a rotation.
        callback_origin: where the provider reaches this deployment's API, such as ``https://api.shop.example``.
        origin: the provider's own, or a stand-in's on this machine.
        credit: dollars one credit costs at most, on the deployment's plan; it bounds a call. What is paid is counted by the prices
            that ``agentic prices`` keeps for provider ``fullenrich`` and unit ``credit``.
        window_s: seconds after a submit from which silence counts; callbacks are repeated for about five minutes.
        ask_every_s: seconds between two questions about one job; the provider asks for no less than five minutes.

    Raises:
        ProgramFault: a key that no header carries, an origin that a key must not go to, a price or a time that is none.
    """

    key: str = field(repr=False)
    callback_origin: str
    earlier_keys: tuple[str, ...] = field(default=(), repr=False)
    origin: str = ORIGIN
    credit: Decimal = Decimal("0.10")
    window_s: float = 1800
    ask_every_s: float = 600

    def __post_init__(self) -> None:
        """Refuse what cannot be."""
        for key in (self.key, *self.earlier_keys):
            if len(key) < _MIN_KEY_CHARS or not key.isascii() or not key.isprintable() or " " in key:
                raise ProgramFault(
                    f"an API key of fullenrich has at least {_MIN_KEY_CHARS} printable ASCII characters without blanks"
                )
        if self.origin != ORIGIN and not Origin.parse(self.origin).loopback:
            raise ProgramFault(f"fullenrich is reached at {ORIGIN}; only a stand-in on this machine may take its place")
        Origin.parse(self.callback_origin)
        if not self.credit.is_finite() or self.credit < 0 or self.window_s <= 0 or self.ask_every_s <= 0:
            raise ProgramFault("credit must be a finite Decimal of no less than 0, and the times more than 0")

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> Self:
        """The account that ``FULLENRICH_API_KEY`` and ``AGENTIC_API_ORIGIN`` name, and ``FULLENRICH_ORIGIN`` for a stand-in.

        Raises:
            ProgramFault: the key or our own address is not set.
        """
        key, callback_origin = environment.get("FULLENRICH_API_KEY"), environment.get(API_ORIGIN)
        if not key or not callback_origin:
            raise ProgramFault(
                f"set FULLENRICH_API_KEY, and {API_ORIGIN} to where fullenrich reaches this deployment's API, such as "
                "https://api.shop.example"
            )
        return cls(key=key, callback_origin=callback_origin, origin=fullenrich_origin(environment))

    def callback_url(self, job_id: UUID) -> str:
        """Where the provider reports a job."""
        return f"{Origin.parse(self.callback_origin).text}{CALLBACK_PATH}/{job_id}"
