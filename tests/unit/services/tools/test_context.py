"""What a handler can say about its call."""

from uuid import uuid4

import pytest

from agentic.contract.json_types import JsonValue
from agentic.contract.principal import Principal
from agentic.services.tools.context import CallContext
from agentic.testing import FakeClock


async def _nothing() -> None:
    return


def _evidence(*observed: JsonValue) -> str | None:
    ctx = CallContext(
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
