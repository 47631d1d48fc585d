"""What a handler can say about its call."""

from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import pytest

from agentic.contract.json_types import JsonValue
from agentic.contract.principal import Principal
from agentic.services.tools.context import CallContext
from agentic.services.tools.metering import countable
from agentic.testing import FakeClock


async def _nothing() -> None:
    return


def _context() -> CallContext:
    return CallContext(
        principal=Principal(organization_id=uuid4(), user_id=None),
        run_id=uuid4(),
        tool="browser.observe",
        idempotency_key=None,
        attempt=1,
        timeout_s=1.0,
        deadline=1.0,
        clock=FakeClock(),
        before_first_byte=_nothing,
    )


def _evidence(*observed: JsonValue) -> str | None:
    ctx = _context()
    for what in observed:
        ctx.observed(what)
    return ctx.evidence


def test_a_call_that_says_nothing_has_no_evidence() -> None:
    assert _evidence() is None


def test_the_same_observation_is_the_same_evidence_in_whatever_order_it_is_told() -> None:
    assert _evidence({"url": "https://shop.test/", "text": "3 left"}) == _evidence(
        {"text": "3 left", "url": "https://shop.test/"}
    )
    assert _evidence("3 left") != _evidence("2 left")


def test_the_last_word_of_a_call_counts() -> None:
    assert _evidence("loading", "3 left") == _evidence("3 left")


@pytest.mark.parametrize("text", ["\ud800", "a\0b", "\ufeff", "e\u0301"])
def test_whatever_a_page_holds_has_a_digest(text: str) -> None:
    evidence = _evidence(text)
    assert evidence is not None
    assert text not in evidence


def test_an_observation_that_is_no_json_has_a_digest_like_any_other() -> None:
    seen: Any = {"at": datetime(2031, 5, 6, tzinfo=UTC), "tags": {"b", "a"}, "odd": object()}
    later: Any = {"at": datetime(2031, 5, 7, tzinfo=UTC), "tags": {"a", "b"}, "odd": object()}
    assert _evidence(seen) == _evidence(seen)
    assert _evidence(seen) != _evidence(later)


@pytest.mark.guarantee("M4", "J4")
@pytest.mark.parametrize("amount", ["abc", None, object(), float("nan"), (), "1,5"])
def test_a_report_that_is_no_number_never_raises_and_cannot_be_counted(amount: Any) -> None:
    ctx = _context()
    ctx.report_usage(amount, "credit", cost=amount, provider="p" * 300)
    [report] = ctx.usage
    assert not countable(report.quantity)
    assert report.cost is None or not countable(report.cost)
    assert len(report.provider or "") == 200
