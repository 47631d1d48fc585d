"""What is read of a chain, and what a check finds."""

from dataclasses import dataclass
from enum import StrEnum
from uuid import UUID

from agentic.contract.values import Value


class Chain(StrEnum):
    """The chained tables."""

    DECISIONS = "policy_decisions"
    EFFECTS = "effects"


@dataclass(frozen=True, kw_only=True, slots=True)
class SuspectLine:
    """A line of a chain that does not stand as it was written, or does not follow the one before it.

    Attributes:
        seq: its number.
        previous: the number of the line before it, 0 for none.
        sound: its content is what its hash was made of.
        linked: it names the hash of the line before it.
        follows: the line of this run that it does name, if any.
    """

    seq: int
    tool: str
    previous: int
    sound: bool
    linked: bool
    follows: int | None


@dataclass(frozen=True, kw_only=True, slots=True)
class ChainFacts:
    """One chain of one run as it is stored, and its head, read in one statement.

    Attributes:
        lines: how many there are.
        seq: number of the last line, 0 without one.
        hash: of the last line, empty without one.
        head_seq: how many lines were written; ``None`` without a head.
        head_hash: of the line written last.
        suspects: in the order of their numbers.
    """

    run_id: UUID
    chain: Chain
    lines: int
    seq: int
    hash: str
    head_seq: int | None
    head_hash: str | None
    suspects: tuple[SuspectLine, ...]


class FindingKind(StrEnum):
    """What is wrong."""

    ALTERED = "altered"
    """A line is not what its hash was made of: edited, or brought from another run."""
    MOVED = "moved"
    """A line stands in another place than it was written in."""
    UNLINKED = "unlinked"
    """A line names another line before it: that one was rewritten, hash and all, or one of the two was exchanged."""
    MISSING = "missing"
    """Lines that were written are gone."""
    INSERTED = "inserted"
    """Lines stand after the last one that the chain wrote."""
    HEAD_MISSING = "head_missing"
    """There are lines and no head, so nothing says how many there were."""
    HEAD_DIFFERS = "head_differs"
    """The last line is not the one that was written last: rewritten, hash and all."""
    NO_EFFECT = "no_effect"
    """A journal row is settled and no effect line says so."""
    NO_JOURNAL = "no_journal"
    """The last effect line of a call says what its journal row does not."""
    NO_DECISION = "no_decision"
    """More attempts of a tool left an effect line than decisions allowed."""


class Finding(Value):
    """One thing that is wrong, with where.

    ``table`` is where the fault shows. ``first`` and ``last`` are the numbers of the lines it is about; ``None`` where a whole
    table is meant or the fault is about no line.
    """

    kind: FindingKind
    table: str
    first: int | None = None
    last: int | None = None
    tool: str | None = None
    ref: str | None = None
    """Of the call, as ``agentic uncertain`` names calls."""
    detail: str


class ChainHead(Value):
    """Where a chain stands; kept elsewhere, it proves later that nothing before it was changed."""

    chain: Chain
    lines: int
    hash: str


class RunAudit(Value):
    """What a check of one run came to."""

    run_id: UUID
    whole: bool
    heads: tuple[ChainHead, ...]
    findings: tuple[Finding, ...]
