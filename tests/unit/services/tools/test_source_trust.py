"""How far the texts of a call's arguments may be believed, which whoever keeps them keeps with them (ADR 0012)."""

from datetime import UTC, datetime
from typing import get_args
from uuid import uuid4

import pytest

from agentic.contract.principal import Principal
from agentic.contract.trust import Trust
from agentic.services.tools.attempt import Attempt
from agentic.services.tools.calls import CallOrigin, ToolCall, ToolInvocation


def _of(origin: CallOrigin, *, context: Trust, said: Trust) -> Trust:
    run_id = uuid4()
    return Attempt(
        call=ToolCall(tool="memory.remember", arguments_text="{}", origin=origin, argument_trust=said),
        inv=ToolInvocation(
            principal=Principal(organization_id=uuid4()),
            run_id=run_id,
            root_run_id=run_id,
            definition="tested",
            fence=1,
            tools={},
            context_trust=context,
        ),
        spec=None,
        started_at=datetime(2026, 1, 2, tzinfo=UTC),
        deadline=0,
    ).source_trust


@pytest.mark.parametrize("context", Trust)
def test_a_model_writes_nothing_better_than_the_worst_it_has_read_whatever_label_it_comes_with(context: Trust) -> None:
    assert {_of("model", context=context, said=said) for said in Trust} == {context}


@pytest.mark.parametrize("origin", [origin for origin in get_args(CallOrigin) if origin != "model"])
@pytest.mark.parametrize("said", Trust)
def test_anybody_else_is_believed_as_their_label_says_and_no_further_than_the_run(
    origin: CallOrigin, said: Trust
) -> None:
    assert _of(origin, context=Trust.PLATFORM, said=said) is said
    assert _of(origin, context=Trust.EXTERNAL, said=said) is Trust.EXTERNAL
