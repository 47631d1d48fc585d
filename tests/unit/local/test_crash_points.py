"""What kills a process at a point: only when it is armed, and without being noticed before."""

from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from agno.models.anthropic import Claude
from agno.models.openai import OpenAIChat

from agentic.local.crash_points import SENTENCES, ArmedByFile, CrashPoint, Left, dying, left
from agentic.local.crash_points.dying import dying_model
from agentic.runtime.agent.agno.answer_only import is_anthropic
from agentic.runtime.agent.agno.scripted import ScriptedModel
from agentic.runtime.agent.script import Say


class Died(BaseException):
    """In place of the signal."""


def died() -> None:
    raise Died


def test_every_point_is_said_in_words_of_its_own() -> None:
    assert list(SENTENCES) == list(CrashPoint)
    assert len(set(SENTENCES.values())) == len(CrashPoint)


def test_a_file_arms_one_run_until_it_is_taken_away(tmp_path: Path) -> None:
    armed, here, elsewhere = ArmedByFile(tmp_path / "armed"), uuid4(), uuid4()
    assert not armed(here)
    armed.arm(here)
    assert armed(here)
    assert armed(None)
    assert not armed(elsewhere)
    armed.disarm()
    armed.disarm()
    assert not armed(here)
    assert not armed(None)


def test_a_call_marked_with_its_claim_may_have_left_sooner() -> None:
    assert left(CrashPoint.BEFORE_EFFECT) is Left.NOTHING
    assert left(CrashPoint.BEFORE_EFFECT, marked_with_claim=True) is Left.MARKED
    assert left(CrashPoint.BEFORE_CLAIM, marked_with_claim=True) is Left.NOTHING
    assert left(CrashPoint.AFTER_COMPLETE) is Left.STORED


@pytest.mark.parametrize("armed", [True, False])
async def test_a_model_dies_after_the_first_piece_of_its_answer_when_it_is_armed(
    armed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dying, "die", died)
    model: Any = dying_model(ScriptedModel(script=[Say("Done.")]), lambda run_id: armed)
    pieces: list[Any] = []

    async def ask() -> None:
        async for piece in model.ainvoke_stream([]):
            pieces.append(piece)  # noqa: PERF401 - what came before the death counts

    if armed:
        with pytest.raises(Died):
            await ask()
        assert len(pieces) == 1
    else:
        await ask()
        assert len(pieces) > 1


def test_a_model_that_is_to_die_is_still_of_its_provider() -> None:
    assert isinstance(dying_model(OpenAIChat(id="m", api_key="k"), lambda run_id: False), OpenAIChat)
    assert is_anthropic(dying_model(Claude(id="m", api_key="k"), lambda run_id: False))
