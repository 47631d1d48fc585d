"""From what is stored to what is wrong with it. Pure."""

from collections.abc import Iterator, Sequence
from uuid import UUID

from agentic.services.audit.models import ChainFacts, ChainHead, Finding, FindingKind, RunAudit, SuspectLine


def judge(run_id: UUID, chains: Sequence[ChainFacts], disagreements: Sequence[Finding]) -> RunAudit:
    """The audit of one run.

    Args:
        run_id: the run.
        chains: both chains of it.
        disagreements: what the record and the journal do not agree on.
    """
    findings = (*(finding for facts in chains for finding in faults(facts)), *disagreements)
    heads = tuple(ChainHead(chain=facts.chain, lines=facts.lines, hash=facts.hash) for facts in chains)
    return RunAudit(run_id=run_id, whole=not findings, heads=heads, findings=findings)


def faults(facts: ChainFacts) -> Iterator[Finding]:
    """What is wrong with one chain, in the order of its lines, its end last."""
    for line in facts.suspects:
        if line.seq > line.previous + 1:
            where = "the beginning of the record is gone" if line.previous == 0 else "lines were taken out"
            yield _missing(facts, line.previous + 1, line.seq - 1, where)
        fault = _line_fault(line)
        if fault is not None:
            kind, detail = fault
            yield Finding(kind=kind, table=facts.chain, first=line.seq, last=line.seq, tool=line.tool, detail=detail)
    yield from _end_faults(facts)


def _line_fault(line: SuspectLine) -> tuple[FindingKind, str] | None:
    elsewhere = "no line of this run" if line.follows is None else f"line {line.follows}"
    if not line.sound and not line.linked and line.follows is not None:
        return FindingKind.MOVED, f"it was written after {elsewhere}, not after line {line.previous}"
    if not line.sound and not line.linked:
        return FindingKind.ALTERED, f"its content does not match its hash, and it follows {elsewhere}"
    if not line.sound:
        return FindingKind.ALTERED, "its content does not match its hash"
    if not line.linked and line.seq == line.previous + 1:  # after a gap the missing line is the one it names
        before = (
            "it follows a line, and stands first" if line.previous == 0 else f"it does not follow line {line.previous}"
        )
        return FindingKind.UNLINKED, f"{before}; the line it names is {elsewhere}"
    return None


def _end_faults(facts: ChainFacts) -> Iterator[Finding]:
    if facts.head_seq is None:
        if facts.lines:
            yield Finding(
                kind=FindingKind.HEAD_MISSING,
                table=facts.chain,
                detail=f"there are {facts.lines} lines and no head to hold them against",
            )
    elif facts.head_seq > facts.seq:
        where = "the end of the record is gone" if facts.lines else "every line is gone"
        yield _missing(facts, facts.seq + 1, facts.head_seq, where)
    elif facts.head_seq < facts.seq:
        yield Finding(
            kind=FindingKind.INSERTED,
            table=facts.chain,
            first=facts.head_seq + 1,
            last=facts.seq,
            detail=f"the chain wrote {facts.head_seq} lines, and these stand after them",
        )
    elif facts.head_hash != facts.hash:
        yield Finding(
            kind=FindingKind.HEAD_DIFFERS,
            table=facts.chain,
            first=facts.seq,
            last=facts.seq,
            detail="the last line is not the one that was written last",
        )


def _missing(facts: ChainFacts, first: int, last: int, where: str) -> Finding:
    return Finding(kind=FindingKind.MISSING, table=facts.chain, first=first, last=last, detail=where)
