"""When cron triggers fire."""

from datetime import UTC, datetime

import pytest

from agentic.local.engine.cron import parse_cron
from agentic.local.engine.errors import CronError


def _at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("expression", "after", "fires"),
    [
        ("* * * * *", "2026-03-01T10:00:00", "2026-03-01T10:01"),
        ("* * * * *", "2026-03-01T10:00:59", "2026-03-01T10:01"),
        ("*/15 * * * *", "2026-03-01T10:46", "2026-03-01T11:00"),
        ("5/20 * * * *", "2026-03-01T10:46", "2026-03-01T11:05"),
        ("30 9-17/4 * * *", "2026-03-01T09:30", "2026-03-01T13:30"),
        ("0 0 1 jan *", "2026-03-01T00:00", "2027-01-01T00:00"),
        ("0 12 * * mon,fri", "2026-03-03T00:00", "2026-03-06T12:00"),
        ("0 12 * * 7", "2026-03-02T00:00", "2026-03-08T12:00"),
        ("0 0 29 2 *", "2026-03-01T00:00", "2028-02-29T00:00"),
        # both day fields restricted: either is enough
        ("0 0 13 * fri", "2026-03-01T00:00", "2026-03-06T00:00"),
        ("0 0 13 * fri", "2026-04-11T00:00", "2026-04-13T00:00"),
        # 02:30 does not exist in Berlin on 29 March 2026, and exists twice on 25 October
        ("TZ=Europe/Berlin 30 2 * * *", "2026-03-28T12:00", "2026-03-30T00:30"),
        ("TZ=Europe/Berlin 30 2 * * *", "2026-10-24T12:00", "2026-10-25T00:30"),
        ("TZ=Europe/Berlin 30 2 * * *", "2026-10-25T00:30", "2026-10-26T01:30"),
        ("TZ=America/New_York 0 20 * * *", "2026-07-01T23:00", "2026-07-02T00:00"),
    ],
)
def test_a_cron_fires_at_the_next_time_its_fields_allow(expression: str, after: str, fires: str) -> None:
    assert parse_cron(expression).next_after(_at(after)) == _at(fires)


@pytest.mark.parametrize(
    "expression",
    [
        "",
        "* * * *",
        "* * * * * *",
        "60 * * * *",
        "5-1 * * * *",
        "*/0 * * * *",
        "* * * * xyz",
        "TZ=Nowhere/At * * * * *",
    ],
)
def test_what_is_no_cron_expression_is_refused(expression: str) -> None:
    with pytest.raises(CronError, match="five fields"):
        parse_cron(expression)


def test_a_cron_that_never_fires_says_so() -> None:
    with pytest.raises(CronError, match="never fires"):
        parse_cron("0 0 30 2 *").next_after(_at("2026-01-01T00:00"))
