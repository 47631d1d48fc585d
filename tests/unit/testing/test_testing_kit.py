"""The parts of the testing kit that need nothing: time and the world outside."""

import multiprocessing
from pathlib import Path

import pytest

from agentic.testing import EffectLedger, FakeClock


def test_time_moves_when_it_is_told_to_and_both_readings_agree() -> None:
    clock = FakeClock()
    before, started = clock.now(), clock.monotonic()
    assert clock.now() == before
    clock.advance(90.5)
    assert (clock.now() - before).total_seconds() == 90.5
    assert clock.monotonic() - started == 90.5


def test_time_does_not_go_back() -> None:
    clock = FakeClock()
    with pytest.raises(ValueError, match="time does not go back"):
        clock.advance(-1)
    assert clock.monotonic() == 0


def test_effects_are_kept_in_order_and_counted_by_kind(tmp_path: Path) -> None:
    ledger = EffectLedger(tmp_path / "world")
    assert ledger.effects() == []
    assert ledger.record("mail", {"to": "per@fjord.example"})
    assert ledger.record("note")
    assert ledger.record("mail")
    assert [effect.what for effect in ledger.effects()] == ["mail", "note", "mail"]
    assert (ledger.count(), ledger.count("mail"), ledger.count("other")) == (3, 2, 0)
    assert EffectLedger(tmp_path / "world").effects("mail")[0].detail == {"to": "per@fjord.example"}


def test_a_key_that_was_seen_before_has_no_second_effect(tmp_path: Path) -> None:
    ledger = EffectLedger(tmp_path / "world")
    assert ledger.record("mail", key="k")
    assert not ledger.record("mail", key="k")
    assert ledger.record("mail", key="other")
    assert ledger.count("mail") == 2


def _record(path: Path, number: int) -> None:
    ledger = EffectLedger(path)
    for _ in range(20):
        ledger.record("keyed", key="shared")
        ledger.record("free", number)


def test_several_processes_share_one_world(tmp_path: Path) -> None:
    spawn = multiprocessing.get_context("fork")
    workers = [spawn.Process(target=_record, args=(tmp_path / "world", number)) for number in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(20)
        assert worker.exitcode == 0
    ledger = EffectLedger(tmp_path / "world")
    assert (ledger.count("keyed"), ledger.count("free")) == (1, 80)
    assert len({effect.pid for effect in ledger.effects("free")}) == 4
