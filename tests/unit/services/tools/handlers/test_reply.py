from datetime import UTC, datetime

import pytest

from agentic.services.tools.handlers.reply import Reply

NOW = datetime(2026, 1, 1, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "Thu, 01 Jan 2026 12:01:30 GMT"}, 90.0),
        ({"retry-after": "Thu, 01 Jan 2026 11:00:00 GMT"}, 0.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "-3"}, None),
        ({}, None),
    ],
)
def test_retry_after_is_read_as_seconds_or_as_a_date_and_never_guessed(
    header: dict[str, str], seconds: float | None
) -> None:
    assert Reply(status=429, headers=header, body=b"").retry_after_s(NOW) == seconds
