"""The kit product developers test their own tools with: the real invoker, runtime and Postgres, and a model that plays a script.

    async with harness(tools=[save_note], script=[Calls([Call("notes.save", {"text": "milk"})]), Say("Saved.")]) as h:
        run_id = await h.start("Remember the milk.")
        assert (await h.settle(run_id)).state == "succeeded"

See ``docs/testing.md``.
"""

from agentic.runtime.agent.script import Call, Calls, Fail, Say, SeenMessage, Usage
from agentic.testing.child import KILLED, advance_in_child, die
from agentic.testing.clock import FakeClock
from agentic.testing.effects import Effect, EffectLedger
from agentic.testing.harness import Harness, RecordingBus, Settled, harness
from agentic.testing.scripted_model import scripted

__all__ = [
    "KILLED",
    "Call",
    "Calls",
    "Effect",
    "EffectLedger",
    "Fail",
    "FakeClock",
    "Harness",
    "RecordingBus",
    "Say",
    "SeenMessage",
    "Settled",
    "Usage",
    "advance_in_child",
    "die",
    "harness",
    "scripted",
]
