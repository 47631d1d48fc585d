"""However a stream is cut into packets and events, the run reads the same message and does the same thing (J8)."""

import pytest

from agentic.local.providers.model import Answer, Wire
from core_world import World
from wire_stage import FORMATS, call, calls, results_of, wired

TEXT = 'Grüße an Zoë 👩‍💻 — "quoted", \\ back\nnew'
WIRES = {
    "whole": Wire(piece_chars=10_000),
    "by the piece": Wire(piece_chars=3),
    "by the character": Wire(piece_chars=1),
    "inside characters": Wire(piece_chars=5, packet_bytes=1),
    "odd packets": Wire(piece_chars=4, packet_bytes=7),
    "interleaved": Wire(piece_chars=2, interleaved=True),
    "interleaved inside characters": Wire(piece_chars=1, packet_bytes=3, interleaved=True),
}


@pytest.mark.parametrize("model", FORMATS.values(), ids=FORMATS)
@pytest.mark.parametrize("wire", WIRES.values(), ids=WIRES)
@pytest.mark.guarantee("J8")
async def test_parallel_calls_arrive_whole_and_run_in_the_model_s_order(
    database: str, model: object, wire: Wire
) -> None:
    world = World()
    asked = calls(call("notes.save", TEXT, id="call_a"), call("notes.save", "second", id="call_b"), wire=wire)
    async with wired(
        database,
        asked,
        Answer(text=TEXT, wire=wire),
        tools=[world.write()],
        model=model,  # type: ignore[arg-type]
    ) as (h, provider):
        run_id = await h.start()
        settled = await h.settle(run_id)
        assert (settled.state, settled.answer, settled.partial_reason) == ("succeeded", TEXT, None)
        assert world.of("notes.save") == [TEXT, "second"]
        assert results_of(provider.script.requests[1]) == ["call_a", "call_b"]
