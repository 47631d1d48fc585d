"""A follower reads what is there, then looks again, sooner after something happened, until the run is over."""

from datetime import UTC, datetime
from uuid import UUID, uuid4

from agentic.services.runs.events import RunEvent, RunEvents
from agentic.services.runs.following import Pace, follow

PACE = Pace(first_s=1, most_s=2, parked_s=4, growth=2, page=2)


def event(seq: int) -> RunEvent:
    return RunEvent(seq=seq, kind="run.uncertain", at=datetime(2026, 1, 1, tzinfo=UTC), data={})


class Log:
    """Events by number; the state of each look in turn."""

    def __init__(self, *looks: tuple[int, str]) -> None:
        self._looks = iter(looks)
        self.asked: list[int] = []

    async def events(self, organization_id: UUID, run_id: UUID, *, after: int, limit: int) -> RunEvents:
        self.asked.append(after)
        last, state = next(self._looks)
        found = [event(seq) for seq in range(after + 1, last + 1)]
        return RunEvents(events=found[:limit], state=state, more=len(found) > limit)


async def followed(log: Log, *, after: int = 0) -> tuple[list[int], list[float]]:
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    pages = [page async for page in follow(log, uuid4(), uuid4(), after=after, pace=PACE, sleep=sleep)]
    return [event.seq for page in pages for event in page.events], slept


async def test_a_run_that_is_over_is_read_to_its_end_without_a_pause() -> None:
    assert await followed(Log((5, "failed"), (5, "failed"), (5, "failed"))) == ([1, 2, 3, 4, 5], [0, 0])


async def test_an_end_that_comes_with_more_than_a_page_is_not_taken_for_the_last() -> None:
    assert (await followed(Log((1, "running"), (4, "succeeded"), (4, "succeeded"))))[0] == [1, 2, 3, 4]


async def test_it_looks_ever_less_often_while_nothing_happens_and_at_once_again_after_something_did() -> None:
    log = Log((1, "running"), (1, "running"), (1, "running"), (2, "running"), (3, "succeeded"))
    assert await followed(log) == ([1, 2, 3], [1, 2, 2, 1])
    assert log.asked == [0, 1, 1, 1, 2]


async def test_it_looks_less_often_at_a_run_that_waits_for_somebody() -> None:
    assert (await followed(Log((1, "parked"), *[(1, "parked")] * 3, (2, "failed"))))[1] == [1, 2, 4, 4]


async def test_it_goes_on_behind_the_event_that_was_seen_last() -> None:
    log = Log((4, "succeeded"))
    assert await followed(log, after=2) == ([3, 4], [])
