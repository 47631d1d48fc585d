"""Which research vendors a deployment has, by their API keys, and where they are reached."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Self

from agentic.contract.errors import ProgramFault
from agentic.services.tools.handlers.egress import Origin

_MIN_CHARS = 8
"""A shorter key could not be taken out of a text without taking out honest words."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ResearchKeys:
    """API keys; ``None`` for a vendor the deployment has no account with, whose tools are then left out.

    Raises:
        ProgramFault: a key that is too short, or holds blanks or characters that no header carries.
    """

    exa: str | None = field(default=None, repr=False)
    parallel: str | None = field(default=None, repr=False)
    firecrawl: str | None = field(default=None, repr=False)
    hunter: str | None = field(default=None, repr=False)

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> Self:
        """The keys that ``EXA_API_KEY``, ``PARALLEL_API_KEY``, ``FIRECRAWL_API_KEY`` and ``HUNTER_API_KEY`` hold, where they are set."""
        return cls(**{each.name: environment.get(f"{each.name.upper()}_API_KEY") or None for each in fields(cls)})

    def __post_init__(self) -> None:
        """Refuse what cannot be a key, naming the vendor alone."""
        for each in fields(self):
            key = getattr(self, each.name)
            if key is None:
                continue
            if len(key) < _MIN_CHARS or not key.isascii() or not key.isprintable() or " " in key:
                raise ProgramFault(
                    f"the API key of {each.name} must be at least {_MIN_CHARS} printable ASCII characters without blanks"
                )


@dataclass(frozen=True, kw_only=True, slots=True)
class ResearchOrigins:
    """Where the vendors are reached: their own addresses, or a stand-in's on this machine.

    Raises:
        ProgramFault: any other address. A key goes to its vendor or nowhere.
    """

    exa: str = "https://api.exa.ai"
    parallel: str = "https://api.parallel.ai"
    firecrawl: str = "https://api.firecrawl.dev"
    hunter: str = "https://api.hunter.io"

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> Self:
        """The vendors' own addresses, or those in ``EXA_ORIGIN`` and the like, which ``agentic dev --stand-ins`` sets."""
        set_ = {each.name: environment.get(f"{each.name.upper()}_ORIGIN") for each in fields(cls)}
        return cls(**{name: origin for name, origin in set_.items() if origin})

    def __post_init__(self) -> None:
        """Refuse an address that is neither the vendor's nor this machine's."""
        for each in fields(self):
            origin = getattr(self, each.name)
            if origin != each.default and not Origin.parse(origin).loopback:
                raise ProgramFault(
                    f"{each.name} is reached at {each.default}; only a stand-in on this machine may take its place"
                )
