"""What a run of a session begins with: the words and answers of the session's earlier runs, copied once (ADR 0032).

Pure. The copies are the run's own messages from its start on, so nothing that happens to an earlier run changes them.
"""

from collections.abc import Iterator, Sequence
from typing import Literal

from agentic.contract.errors import RunEnded
from agentic.contract.trust import Trust
from agentic.runtime.agent.ports import AgentLoop
from agentic.services.runs.models import EarlierRun, RunMessage, SessionSoFar

MAX_RUNS = 20
MAX_BYTES = 32 * 1024
_MAX_NAMES = 20
_NOTE = "[Note of the platform, not written by the user]"

Spoken = tuple[Literal["user", "assistant"], str, Trust]


def history(so_far: SessionSoFar, loop: AgentLoop) -> list[RunMessage]:
    """The messages before a run's own words, oldest first.

    The newest messages are taken while they fit into 32 KiB of text and 20 runs, whole ones alone; what is older than the first that
    does not fit is left out, and a note says how many messages that are. Calls of the session of which nobody knows whether they
    happened are named in a second note. An answer carries the lowest label that its run's context has held.
    """
    kept = _newest(so_far.newest, loop)
    left_out = 2 * so_far.answered - len(kept)
    notes_first = [_left_out(left_out)] if left_out else []
    notes_last = [_unknown(so_far.uncertain)] if so_far.uncertain else []
    spoken: list[Spoken] = [*notes_first, *reversed(kept), *notes_last]
    return [loop.quoted(role, text, trust) for role, text, trust in spoken]


def _newest(earlier: Sequence[EarlierRun], loop: AgentLoop) -> list[Spoken]:
    kept: list[Spoken] = []
    room = MAX_BYTES
    for role, text, trust in _backwards(earlier, loop):
        room -= len(text.encode("utf-8", "replace"))
        if room < 0:
            break
        kept.append((role, text, trust))
    return kept


def _backwards(earlier: Sequence[EarlierRun], loop: AgentLoop) -> Iterator[Spoken]:
    """What was said, the newest first, up to a run whose words this release cannot read."""
    for run in earlier[:MAX_RUNS]:
        words = _words(run, loop)
        if words is None:
            return
        yield "assistant", run.answer, run.answer_trust
        yield "user", words, run.words.trust


def _words(run: EarlierRun, loop: AgentLoop) -> str | None:
    if run.format != loop.format:
        return None
    try:
        return loop.text_of(run.words)
    except RunEnded:  # unreadable history ends the run it belongs to, and no other
        return None


def _left_out(messages: int) -> Spoken:
    return "user", f"{_NOTE} Of this conversation, {messages} earlier messages are left out here.", Trust.PLATFORM


def _unknown(tools: Sequence[str]) -> Spoken:
    named = ", ".join(tools[:_MAX_NAMES]) + (f" and {len(tools) - _MAX_NAMES} more" if len(tools) > _MAX_NAMES else "")
    text = (
        f"{_NOTE} Earlier in this conversation, calls of these tools may or may not have happened, and nobody knows yet: {named}. "
        "Do not repeat them; an operator finds out."
    )
    return "user", text, Trust.PLATFORM
