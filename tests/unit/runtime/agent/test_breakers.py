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


def _turns(breakers: Breakers, *turns: list[str]) -> Breakers | Trip:
    moved: Breakers | Trip = breakers
    for number, keys in enumerate(turns, start=breakers.turn + 1):
        assert isinstance(moved, Breakers)
        moved = moved.proposed(number, keys)
    return moved


def test_a_turn_that_is_taken_up_again_counts_once() -> None:
    once = Breakers().proposed(1, ["a", "a"])
    assert isinstance(once, Breakers)
    assert once.proposed(1, ["a", "a"]) is once
    assert Breakers.load(once.dump()).proposed(1, ["a", "a"]) == once
    assert once.counts["a"].calls == 2


def test_a_batch_that_reaches_the_limit_is_rejected_whole() -> None:
    assert Breakers().proposed(1, ["b", *["a"] * 5]) is Trip.LOOP


def test_any_call_of_the_turn_that_had_to_answer_is_a_loop_and_none_is_not() -> None:
    four = _turns(Breakers(), ["a"], ["a"], ["a", "a"])
    assert isinstance(four, Breakers)
    assert four.must_answer
    assert four.proposed(4, ["b"]) is Trip.LOOP
    assert isinstance(four.proposed(4, []), Breakers)
    assert four.proposed(3, ["a", "a"]) is four  # the turn that led here, taken up after a crash
