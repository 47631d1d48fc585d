"""The keys of a call: what the journal and the vendor know it by."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest

from agentic.services.tools.keys import call_key, usage_id, vendor_key
from agentic.services.tools.ports import Claim

ORGANIZATION, OTHER, RUN = UUID(int=1), UUID(int=2), UUID(int=3)
GIVEN: dict[str, Any] = {
    "organization_id": ORGANIZATION,
    "run_id": RUN,
    "tool": "mail.send",
    "step_path": "agent",
    "arguments_digest": "d1",
    "contract_hash": "c1",
}
CLAIM = Claim(
    key=call_key(**GIVEN),
    tool="mail.send",
    epoch=7,
    attempt=1,
    repeats=0,
    lease_expires_at=datetime(2026, 1, 1, tzinfo=UTC),
    effect_sent_at=None,
    span_id=UUID(int=4),
)


@pytest.mark.guarantee("J7")
def test_every_attempt_within_an_epoch_has_one_vendor_key() -> None:
    attempts = [replace(CLAIM, attempt=n, repeats=n, span_id=UUID(int=n)) for n in range(5)]
    assert len({vendor_key(claim) for claim in attempts}) == 1
    assert len(vendor_key(CLAIM)) == 64


@pytest.mark.guarantee("J7", "T1")
def test_another_epoch_call_run_or_organization_has_another_vendor_key() -> None:
    changes: list[dict[str, Any]] = [
        {"organization_id": OTHER},
        {"run_id": OTHER},
        {"tool": "mail.reply"},
        {"arguments_digest": "d2"},
        {"step_path": "step/2"},
    ]
    others = [replace(CLAIM, epoch=8), *(replace(CLAIM, key=call_key(**{**GIVEN, **change})) for change in changes)]
    assert len({vendor_key(claim) for claim in [CLAIM, *others]}) == len(others) + 1


def test_the_contract_is_compared_and_no_part_of_the_place_in_the_journal() -> None:
    changed = call_key(**{**GIVEN, "contract_hash": "c2"})
    assert (changed.scope, changed.key) == (CLAIM.key.scope, CLAIM.key.key)
    assert changed.request_hash != CLAIM.key.request_hash


@pytest.mark.guarantee("M1")
def test_a_usage_row_of_a_call_has_one_id_however_often_it_is_attempted() -> None:
    assert usage_id(CLAIM, 0) == usage_id(replace(CLAIM, attempt=9), 0)
    assert len({usage_id(CLAIM, 0), usage_id(CLAIM, 1), usage_id(replace(CLAIM, epoch=8), 0)}) == 3
