"""From what a chain looks like to what happened to it: each fault under one name, at its line, and nothing else blamed."""

from typing import Any
from uuid import UUID

import pytest

from agentic.services.audit.judgement import faults, judge
from agentic.services.audit.models import Chain, ChainFacts, Finding, FindingKind, SuspectLine

RUN = UUID("11111111-2222-4333-8444-555555555555")


def line(seq: int, **given: Any) -> SuspectLine:
    sound = {"tool": "mail.send", "previous": seq - 1, "sound": True, "linked": True, "follows": seq - 1}
    return SuspectLine(seq=seq, **{**sound, **given})


def chain(*suspects: SuspectLine, **given: Any) -> ChainFacts:
    whole = {"lines": 5, "seq": 5, "hash": "e5", "head_seq": 5, "head_hash": "e5"}
    return ChainFacts(run_id=RUN, chain=Chain.EFFECTS, suspects=suspects, **{**whole, **given})


def told(facts: ChainFacts) -> list[tuple[str, int | None, int | None]]:
    return [(finding.kind, finding.first, finding.last) for finding in faults(facts)]


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        (chain(), []),
        (chain(lines=0, seq=0, hash="", head_seq=None, head_hash=None), []),
        (chain(lines=0, seq=0, hash="", head_seq=0, head_hash=""), []),
        (chain(line(3, sound=False)), [("altered", 3, 3)]),
        (chain(line(3, sound=False, linked=False, follows=None)), [("altered", 3, 3)]),
        (chain(line(3, sound=False, linked=False, follows=4)), [("moved", 3, 3)]),
        (chain(line(3, linked=False, follows=None)), [("unlinked", 3, 3)]),
        (chain(line(1, linked=False, follows=None)), [("unlinked", 1, 1)]),
        (chain(line(4, previous=1, linked=False, follows=None)), [("missing", 2, 3)]),
        (chain(line(3, previous=0, linked=False, follows=None)), [("missing", 1, 2)]),
        (chain(line(4, previous=2, sound=False, linked=False, follows=None)), [("missing", 3, 3), ("altered", 4, 4)]),
        (chain(lines=3, seq=3, hash="e3"), [("missing", 4, 5)]),
        (chain(lines=0, seq=0, hash=""), [("missing", 1, 5)]),
        (chain(head_seq=4, head_hash="e4"), [("inserted", 5, 5)]),
        (chain(head_hash="x"), [("head_differs", 5, 5)]),
        (chain(head_seq=None, head_hash=None), [("head_missing", None, None)]),
    ],
)
def test_each_fault_has_one_name_and_its_lines(
    facts: ChainFacts, expected: list[tuple[str, int | None, int | None]]
) -> None:
    assert told(facts) == expected


def test_a_fault_is_told_in_words_that_name_the_other_line() -> None:
    moved, missing = faults(chain(line(3, sound=False, linked=False, follows=4), lines=3, seq=3, hash="e3"))
    assert moved.detail == "it was written after line 4, not after line 2"
    assert missing.detail == "the end of the record is gone"
    [gone] = faults(chain(lines=0, seq=0, hash=""))
    assert gone.detail == "every line is gone"


def test_an_audit_is_whole_only_without_any_finding_and_always_says_where_its_chains_stand() -> None:
    assert judge(RUN, [chain()], []).whole
    other = Finding(kind=FindingKind.NO_EFFECT, table="effects", detail="d")
    found = judge(RUN, [chain(line(2, sound=False))], [other])
    assert (found.whole, [finding.kind for finding in found.findings]) == (False, ["altered", "no_effect"])
    assert [(head.chain, head.lines, head.hash) for head in found.heads] == [("effects", 5, "e5")]
