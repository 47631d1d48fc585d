"""The breakers' counter: loops, denials, evidence, and the turn before the limit."""

from agentic.runtime.agent.breakers import MAX_RESTARTS, Breakers, Trip


def _calls(breakers: Breakers, key: str, times: int) -> Breakers | Trip:
    moved: Breakers | Trip = breakers
    for _ in range(times):
        assert isinstance(moved, Breakers)
        moved = moved.called(key)
    return moved


def test_the_fifth_identical_call_is_a_loop() -> None:
    four = _calls(Breakers(), "a", 4)
    assert isinstance(four, Breakers)
    assert four.called("a") is Trip.LOOP
    assert isinstance(four.called("b"), Breakers)


def test_the_third_identical_denial_ends_the_run() -> None:
    once = Breakers().denied("a")
    assert isinstance(once, Breakers)
    twice = once.denied("a")
    assert isinstance(twice, Breakers)
    assert twice.denied("a") is Trip.DENIED
    assert isinstance(twice.denied("b"), Breakers)


def test_a_new_observation_restarts_the_count() -> None:
    four = _calls(Breakers(), "page", 1)
    assert isinstance(four, Breakers)
    four = _calls(four.observed("page", "v1"), "page", 3)
    assert isinstance(four, Breakers)
    assert four.must_answer
    changed = four.observed("page", "v2")
    assert not changed.must_answer
    assert changed.counts["page"].calls == 1
    assert changed.restarts == 1


def test_the_same_observation_keeps_counting() -> None:
    seen = _calls(Breakers(), "page", 2)
    assert isinstance(seen, Breakers)
    seen = seen.observed("page", "v1").observed("page", "v1")
    assert seen.counts["page"].calls == 2
    assert seen.restarts == 0


def test_a_page_that_changes_at_every_look_can_be_looked_at_thirty_six_times() -> None:
    breakers: Breakers | Trip = Breakers()
    looks = 0
    while True:
        assert isinstance(breakers, Breakers)
        breakers = breakers.called("page")
        if breakers is Trip.LOOP:
            break
        assert isinstance(breakers, Breakers)
        looks += 1
        breakers = breakers.observed("page", f"v{looks}")
    assert looks == 36
    assert MAX_RESTARTS == 32


def test_the_turn_before_the_limit_must_answer() -> None:
    four = _calls(Breakers(), "a", 4)
    assert isinstance(four, Breakers)
    assert four.must_answer
    three = _calls(Breakers(), "a", 3)
    assert isinstance(three, Breakers)
    assert not three.must_answer


def test_what_is_stored_reads_back() -> None:
    breakers = _calls(Breakers(), "a", 3)
    assert isinstance(breakers, Breakers)
    breakers = breakers.observed("a", "v1")
    assert Breakers.load(breakers.dump()) == breakers
    assert Breakers.load({}) == Breakers()
