"""How long things are kept, and how much of them went."""

from dataclasses import dataclass
from typing import Self
from uuid import UUID

from pydantic import Field, model_validator

from agentic.contract.values import Value

THIRTEEN_MONTHS = 395
LONGEST_DAYS = 100 * 366
"""A hundred years: further back the calendar of a database soon ends."""


class RetentionPeriods(Value):
    """Days, all of them, counted by the database's clock. Nothing of a run that has not ended is ever removed."""

    runs_days: int = Field(default=THIRTEEN_MONTHS, ge=1, le=LONGEST_DAYS)
    """From the end of the last run of a tree. Its messages, decisions, effects, approvals, journal rows, artifacts and usage lines go
    with it."""
    spans_days: int = Field(default=90, ge=1, le=LONGEST_DAYS)
    """From the end of the month they began in."""
    events_days: int = Field(default=90, ge=1, le=LONGEST_DAYS)
    outbox_days: int = Field(default=7, ge=1, le=LONGEST_DAYS)
    """Events that were sent."""
    deliveries_days: int = Field(default=90, ge=1, le=LONGEST_DAYS)
    """Counts of deliveries that changed nothing, by their day, and claims on deliveries that are about no run: a provider that repeats
    one after that is taken for new."""

    @model_validator(mode="after")
    def _parts_do_not_outlive_their_run(self) -> Self:
        if max(self.spans_days, self.events_days) > self.runs_days:
            raise ValueError("spans and events go with their run at the latest; keep runs at least as long")
        return self


@dataclass(frozen=True, kw_only=True, slots=True)
class OutlivedTree:
    """A run with all it started, each of them ended long ago and nothing of them unknown or held."""

    organization_id: UUID
    root_run_id: UUID
    run_ids: tuple[UUID, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Removed:
    """What went, or would go. Partitions of spans are counted as one each, whatever they held."""

    runs: int = 0
    span_partitions: int = 0
    spans: int = 0
    """Those that stood in no partition of a month."""
    events: int = 0
    outbox: int = 0
    deliveries: int = 0
    """Claims of no run, and counts of a day, provider and reason."""
    left: bool = False
    """Something is left for the next time: too much at once, or a store that did not answer."""
