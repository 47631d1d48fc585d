"""What is true of tools now, beside their contracts: switched off in an organization, and the life of their releases (ADR 0027).

New runs are offered tools by it; a call reads the same rows in its preflight.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol
from uuid import UUID

from agentic.services.tools.models import ToolSpec


class ReleaseState(StrEnum):
    """Where a version of a tool is in its life. It never goes back; a new version does."""

    ACTIVE = "active"
    DEPRECATED = "deprecated"
    """New runs do not get it; runs that have it finish with it."""
    REVOKED = "revoked"
    """Nobody gets it, and ``InFlight`` says what becomes of runs that have it."""


class InFlight(StrEnum):
    """What a revocation means for runs that started before it."""

    FINISH = "finish"
    """They may still call."""
    REFUSE = "refuse"
    """Their calls are ``tool_unavailable``; effects that are done still answer."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Release:
    """Where one version of a tool is in its life."""

    tool: str
    version: int
    state: ReleaseState
    in_flight: InFlight | None
    """Set when it is revoked."""
    changed: bool
    """Whether this very request moved it; ``False`` when it was there already."""


@dataclass(frozen=True, kw_only=True, slots=True)
class LiveTools:
    """The live state of an organization's tools. What is not named is enabled and active."""

    off: frozenset[str] = frozenset()
    """Names of tools that are disabled or withdrawn here."""
    releases: Mapping[tuple[str, int], ReleaseState] = field(default_factory=dict)
    """By name and version."""

    def offers(self, spec: ToolSpec) -> bool:
        """Whether a run that starts now may have this tool."""
        active = self.releases.get((spec.name, spec.version), ReleaseState.ACTIVE) is ReleaseState.ACTIVE
        return active and spec.name not in self.off


class LiveStates(Protocol):
    """Reads live state. Postgres in every deployment."""

    async def live(self, organization_id: UUID) -> LiveTools:
        """The live state of every tool in an organization."""
        ...


class EverythingLive:
    """Live state where there is no database: nothing was ever switched off."""

    async def live(self, organization_id: UUID) -> LiveTools:
        """Everything is enabled and active."""
        del organization_id
        return LiveTools()
