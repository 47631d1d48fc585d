"""Looks at servers of others: so many at once, none of them queued, and a place that is left is free."""

from contextlib import ExitStack
from uuid import uuid4

import pytest

from agentic.api.looks import LookLimits, Looks
from agentic.contract.errors import RetryLater


def test_one_organization_takes_its_own_places_and_nobody_elses() -> None:
    looks, ours = Looks(LookLimits(at_once=4, of_an_organization=2)), uuid4()
    with looks.one(ours), looks.one(ours):
        with pytest.raises(RetryLater, match="of this organization"), looks.one(ours):
            pass
        with looks.one(uuid4()), looks.one(ours_too := uuid4()):
            with pytest.raises(RetryLater, match="many servers"), looks.one(uuid4()):
                pass
            with pytest.raises(RetryLater, match="many servers"), looks.one(ours_too):
                pass
    with looks.one(ours), looks.one(ours):
        pass


def test_a_look_that_fails_leaves_its_place() -> None:
    looks, ours = Looks(LookLimits(at_once=1, of_an_organization=1)), uuid4()
    for _ in range(3):
        with pytest.raises(OSError, match="gone"), looks.one(ours):
            raise OSError("gone")
    with ExitStack() as held:
        held.enter_context(looks.one(uuid4()))
