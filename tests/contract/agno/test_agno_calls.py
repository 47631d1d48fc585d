"""Every call the model proposes reaches us once, in its own words and under an id of its own."""

import asyncio
import json

import pytest
from agno_dialects import ALL, CHAT, CLAUDE, GEMINI, RESPONSES, Dialect
from agno_stage import BOUND_S, SEARCH, Hooks, StagedRun
from agno_wire import Reply, WireCall, provider

from agentic.contract.trust import Trust
from agentic.runtime.agent.agno.scripted import ScriptedModel
from agentic.runtime.agent.ports import Answer, ProposedCall, TurnCompleted, TurnPaused
from agentic.runtime.agent.script import Call, Calls, Say

DIALECTS = pytest.mark.parametrize("dialect", ALL, ids=lambda dialect: dialect.name)
WITH_IDS = pytest.mark.parametrize("dialect", [CHAT, RESPONSES, CLAUDE], ids=lambda dialect: dialect.name)


@DIALECTS
async def test_unknown_tools_pause_once_with_everything_behind_them_and_no_further_request(dialect: Dialect) -> None:
    calls = (
        WireCall(id="call_1", name="drop_table", arguments='{"q": "x"}'),
        WireCall(id="call_2", name="Email_Send", arguments='{"q": "y"}'),
        WireCall(id="call_3", name="email_send", arguments='{"q": "z"}'),
        WireCall(id="call_4", name="crm_search", arguments='{"q": "z"}'),
    )
    with provider([Reply(calls=calls), Reply(text="ok")], dialect.stream) as endpoint:
        run = StagedRun(lambda: dialect.model(endpoint.base_url))
        end = await run.turn()
        assert isinstance(end, TurnPaused)
        assert [(call.tool, call.fault) for call in end.calls] == [
            ("drop_table", "unknown_tool"),
            ("Email_Send", "unknown_tool"),
            ("email.send", None),
            ("crm.search", None),
        ]
        assert (len(endpoint.bodies), run.hooks.reads) == (1, [])
        run.drain()
        assert isinstance(await run.turn(), TurnCompleted)
        assert len(dialect.results(endpoint.bodies[1])) == 4


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "plain"])
@pytest.mark.parametrize("text", ["null", '["a"]', '"{}"', '{"q": ', "{}{}", "", "{'q': 1}", "(1, 2)", '{"q": NaN}'])
async def test_unsound_arguments_of_a_read_reach_the_invoker_as_the_model_wrote_them(text: str, stream: bool) -> None:
    model = ScriptedModel(script=[Calls([Call("crm.search", text)]), Say("done")])
    run = StagedRun(lambda: model, stream=stream)
    assert isinstance(await run.turn(), TurnCompleted)
    assert [call.arguments_text for call in run.hooks.reads] == [text]
    assert len(model.asked) == 2


@pytest.mark.parametrize("text", ["null", '["a"]', '{"q": ', "{}{}", ""])
async def test_unsound_arguments_of_a_write_pause_like_sound_ones(text: str) -> None:
    model = ScriptedModel(
        script=[Calls([Call("email.send", text), Call("drop.table"), Call("crm.upsert", {"q": "x"})])]
    )
    end = await StagedRun(lambda: model).turn()
    assert isinstance(end, TurnPaused)
    assert end.calls[0].arguments_text == text
    assert [call.fault for call in end.calls] == [None, "unknown_tool", None]
    assert len(model.asked) == 1


@DIALECTS
async def test_strings_that_look_like_constants_stay_the_strings_the_model_wrote(dialect: Dialect) -> None:
    words = {"a": "None", "b": "true", "c": " FALSE ", "d": "Null"}
    calls = tuple(
        WireCall(id=f"call_{i}", name=name, arguments=json.dumps(words))
        for i, name in enumerate(("crm_search", "email_send"))
    )
    with provider([Reply(calls=calls)], dialect.stream) as endpoint:
        run = StagedRun(lambda: dialect.model(endpoint.base_url))
        end = await run.turn()
    assert isinstance(end, TurnPaused)
    for call in (*run.hooks.reads, *end.calls):
        assert json.loads(call.arguments_text or "") == words


@WITH_IDS
async def test_call_ids_used_twice_in_an_answer_and_again_later_become_unique_and_every_result_arrives(
    dialect: Dialect,
) -> None:
    def again(arguments: str) -> WireCall:
        return WireCall(id="call_same", name="crm_upsert", arguments=arguments)

    replies = [
        Reply(calls=(again('{"q": "1"}'), again('{"q": "2"}'))),
        Reply(calls=(again('{"q": "3"}'),)),
        Reply(text="ok"),
    ]
    with provider(replies, dialect.stream) as endpoint:
        run = StagedRun(lambda: dialect.model(endpoint.base_url))
        assert isinstance(await run.to_end(), TurnCompleted)
        results = dialect.results(endpoint.bodies[2])
    assert len({call_id for call_id, _ in results}) == 3
    assert [json.loads(text)["asked"]["q"] for _, text in results] == ["1", "2", "3"]


async def test_the_renamed_ids_stand_in_the_blocks_that_claude_is_replayed_from() -> None:
    twice = tuple(WireCall(id="call_same", name="crm_upsert", arguments=f'{{"q": "{i}"}}') for i in range(2))
    with provider([Reply(calls=twice), Reply(text="ok")], CLAUDE.stream) as endpoint:
        run = StagedRun(lambda: CLAUDE.model(endpoint.base_url))
        await run.to_end()
        body = endpoint.bodies[1]
    used = [b["id"].removeprefix("toolu_") for b in body["messages"][1]["content"] if b["type"] == "tool_use"]
    assert used == [call_id for call_id, _ in CLAUDE.results(body)]


async def test_gemini_keeps_the_tool_name_on_every_result_inline_or_drained() -> None:
    calls = tuple(
        WireCall(id="-", name=name, arguments='{"q": "x"}') for name in ("crm_search", "email_send", "crm_search")
    )
    with provider([Reply(calls=calls), Reply(text="ok")], GEMINI.stream) as endpoint:
        run = StagedRun(lambda: GEMINI.model(endpoint.base_url))
        await run.to_end()
        results = GEMINI.results(endpoint.bodies[1])
    assert [name for name, _ in results] == ["crm_search", "email_send", "crm_search"]


async def test_a_call_without_arguments_goes_on_in_every_later_request() -> None:
    call = WireCall(id="-", name="crm_search", arguments="null")
    with provider([Reply(calls=(call,)), Reply(text="ok")], GEMINI.stream) as endpoint:
        run = StagedRun(lambda: GEMINI.model(endpoint.base_url))
        assert isinstance(await run.turn(), TurnCompleted)
    assert [read.arguments_text for read in run.hooks.reads] == [""]


@DIALECTS
async def test_what_no_provider_takes_back_is_sent_differently_and_stored_as_written(dialect: Dialect) -> None:
    odd = WireCall(id="call_1", name="crm.search<|x|>", arguments='{"q": "x"}')
    with provider([Reply(calls=(odd,)), Reply(text="ok")], dialect.stream) as endpoint:
        run = StagedRun(lambda: dialect.model(endpoint.base_url))
        assert isinstance(await run.to_end(), TurnCompleted)
        sent = json.dumps(endpoint.bodies[1])
    assert sent.count("<|x|>") == 1, "in the text of the result alone"
    assert "unknown_crm_search__x__" in sent
    assert b"crm.search<|x|>" in run.log[1].body


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "plain"])
async def test_reads_behind_a_write_wait_with_it_and_reads_before_it_run(stream: bool) -> None:
    answer = Calls([Call("crm.search", {"q": "1"}), Call("crm.upsert", {"q": "2"}), Call("crm.search", {"q": "3"})])
    run = StagedRun(lambda: ScriptedModel(script=[answer]), stream=stream)
    end = await run.turn()
    assert isinstance(end, TurnPaused)
    assert [call.ordinal for call in run.hooks.reads] == [0]
    assert [call.ordinal for call in end.calls] == [1, 2]


async def test_at_most_eight_reads_run_at_once_and_all_of_them_run() -> None:
    release, eight = asyncio.Event(), asyncio.Event()
    running = most = 0

    class Slow(Hooks):
        async def read(self, call: ProposedCall) -> Answer:
            nonlocal running, most
            running += 1
            most = max(most, running)
            if running == 8:
                eight.set()
            await release.wait()
            running -= 1
            return await super().read(call)

    run = StagedRun(
        lambda: ScriptedModel(script=[Calls([Call("crm.search", {"q": str(i)}) for i in range(20)]), Say("ok")])
    )
    run.hooks = Slow()
    turn = asyncio.ensure_future(run.turn())
    async with asyncio.timeout(BOUND_S):
        await eight.wait()
        for _ in range(50):  # every task that could start, has started
            await asyncio.sleep(0)
        release.set()
        await turn
    assert (most, len(run.hooks.reads)) == (8, 20)


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "plain"])
@pytest.mark.guarantee("J8")
async def test_the_answer_is_stored_before_the_first_of_its_reads_and_never_asked_for_again(stream: bool) -> None:
    class Died(BaseException):
        """The process is gone."""

    class Dying(Hooks):
        async def read(self, call: ProposedCall) -> Answer:
            assert self.stored[-1].role == "assistant"
            raise Died

    model = ScriptedModel(
        script=[Calls([Call("crm.search", {"q": "Ada"}), Call("email.send", {"q": "Hi"}, reword=("q",))]), Say("sent")],
        reword=True,
    )
    run = StagedRun(lambda: model, stream=stream)
    run.hooks = Dying()
    with pytest.raises(Died):
        await run.turn()
    before = run.loop().open_calls(run.log, run.tools)
    run.hooks = Hooks()
    assert run.drain() == before
    assert isinstance(await run.turn(), TurnCompleted)
    assert len(model.asked) == 2


async def test_an_answer_without_inline_reads_is_handed_over_at_the_pause_alone() -> None:
    run = StagedRun(lambda: ScriptedModel(script=[Calls([Call("email.send", {"q": "Hi"})])]))
    end = await run.turn()
    assert isinstance(end, TurnPaused)
    assert run.hooks.events == ["request"]
    assert [message.role for message in end.new] == ["assistant"]


async def test_messages_carry_the_lowest_trust_of_what_the_model_had_read() -> None:
    run = StagedRun(
        lambda: ScriptedModel(script=[Calls([Call("crm.search", {"q": "Ada"})]), Say("ok")]), tools=(SEARCH,)
    )
    await run.turn()
    assert [(message.role, message.trust) for message in run.log] == [
        ("user", Trust.USER),
        ("assistant", Trust.USER),
        ("tool", Trust.EXTERNAL),
        ("assistant", Trust.EXTERNAL),
    ]
