"""Single calls through the real invoker: what is answered, what runs, what is stored, and what it costs in statements."""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from pydantic import BaseModel

from agentic.contract.principal import RunCeilings
from agentic.contract.results import ErrorCode
from agentic.contract.trust import Trust
from agentic.runtime.agent.script import Turn
from agentic.services.tools.context import CallContext
from agentic.services.tools.declarations import internal_tool
from agentic.services.tools.handlers.errors import RetryableUpstreamError, UpstreamUnavailableError
from agentic.services.tools.ports import Decision, PolicyQuestion
from agentic.storage.database import Database
from agentic.testing import Call, Calls, Harness, Say, harness
from core_world import Done, World, journal, rows

SAVE = Calls([Call("notes.save", {"text": "milk"})])


async def answers(h: Harness, run_id: Any) -> list[dict[str, Any]]:
    """What the model read, call by call."""
    return [json.loads(text.split("\n")[0]) for role, text in await h.messages(run_id) if role == "tool"]


@pytest.mark.guarantee("D3")
async def test_what_the_model_cannot_have_is_answered_recorded_and_the_run_goes_on(database: str) -> None:
    world = World()
    script: list[Turn] = [
        Calls([Call("drop_table", {"x": 1}), Call("Notes_Save", {"text": "a"}), Call("notes.save", {"text": "b"})]),
        Calls([Call("notes.save", '{"text": "cut'), Call("notes.save", {"words": "c"}), Call("notes.save", "[1]")]),
        Say("Done."),
    ]
    async with harness(tools=[world.write()], script=script, database_url=database) as h:
        run_id = await h.start()
        assert (await h.settle(run_id)).state == "succeeded"
        codes = [answer.get("reason_code", "ok") for answer in await answers(h, run_id)]
        assert codes == ["unknown_tool", "unknown_tool", "ok", "invalid_input", "invalid_input", "invalid_input"]
        assert world.of("notes.save") == ["b"]
        spans = await h.calls(run_id)
        assert [span["code"] for span in spans] == [None if code == "ok" else code for code in codes]
        assert all(span["state"] == "closed" for span in spans)
        details = [text.split("\n")[1:] for role, text in await h.messages(run_id) if role == "tool"]
        assert "notes_save" in details[1][0]


@pytest.mark.guarantee("N1")
async def test_the_platform_name_is_no_name_of_a_tool(database: str) -> None:
    """A model that writes the dotted name gets the close name, not a fault of its arguments."""
    world = World()

    async with harness(tools=[world.write()], script=[SAVE, Say("Done.")], database_url=database) as h:
        run_id = await h.start()
        loop = h.platform.loop
        original = loop.open_calls

        def dotted(*args: Any) -> Any:
            return [
                replace(c, tool="notes.save", model_name="notes.save", fault="unknown_tool") for c in original(*args)
            ]

        loop.open_calls = dotted  # type: ignore[method-assign, assignment]
        assert (await h.settle(run_id)).state == "succeeded"
        [answer] = await answers(h, run_id)
        assert answer["reason_code"] == "unknown_tool"
        [text] = [text for role, text in await h.messages(run_id) if role == "tool"]
        assert "notes_save" in text.split("\n")[1]
        assert world.effects == []


async def test_a_model_that_calls_what_it_cannot_have_for_ever_meets_a_bound(database: str) -> None:
    world = World()
    ceilings = RunCeilings(max_model_requests=5)
    script: list[Turn] = [Calls([Call("drop_table", {"n": n})]) for n in range(20)]
    async with harness(tools=[world.write()], script=script, database_url=database, ceilings=ceilings) as h:
        run_id = await h.start()
        settled = await h.settle(run_id)
        assert (settled.state, settled.partial_reason) == ("succeeded", "limit_reached")
        assert len(await h.calls(run_id)) == 5


async def test_calls_count_against_their_ceiling_and_the_run_ends_with_what_it_has(database: str) -> None:
    world = World()
    script: list[Turn] = [Calls([Call("notes.save", {"text": str(n)})]) for n in range(20)]
    ceilings = RunCeilings(max_tool_calls=3)
    async with harness(tools=[world.write()], script=script, database_url=database, ceilings=ceilings) as h:
        run_id = await h.start()
        settled = await h.settle(run_id)
        assert (settled.state, settled.partial_reason) == ("succeeded", "limit_reached")
        assert world.of("notes.save") == ["0", "1", "2"]


@pytest.mark.guarantee("D4")
async def test_a_policy_that_raises_lets_nothing_run(database: str) -> None:
    world = World()

    class Broken:
        async def decide(self, question: PolicyQuestion) -> Decision:
            raise ConnectionError("the checkpoint cannot be reached")

    async with harness(
        tools=[world.write(), world.read()],
        script=[Calls([Call("crm.search", {"text": "a"})]), SAVE, Say("Done.")],
        database_url=database,
        policy=Broken(),
    ) as h:
        run_id = await h.start()
        settled = await h.settle(run_id)
        assert (settled.state, settled.error_code) == ("failed", "crash_loop")
        assert world.effects == []


@pytest.mark.guarantee("J1", "B4")
async def test_the_same_write_twice_in_a_turn_and_again_later_is_one_effect_and_one_answer(database: str) -> None:
    world = World()
    script: list[Turn] = [Calls([*SAVE.calls, *SAVE.calls]), SAVE, Say("Done.")]
    async with harness(tools=[world.write()], script=script, database_url=database) as h:
        run_id = await h.start()
        assert (await h.settle(run_id)).state == "succeeded"
        assert world.effects == [("notes.save", "milk")]
        texts = [text for role, text in await h.messages(run_id) if role == "tool"]
        assert len(texts) == 3
        assert len(set(texts)) == 1
        replayed = [bool(span["attributes"].get("replayed")) for span in await h.calls(run_id)]
        assert replayed == [False, True, True]
        assert (await h.tree(run_id)).run["tool_calls"] == 1  # replays cost nothing


@pytest.mark.guarantee("J4")
@pytest.mark.parametrize("odd", [{"id": 7}, None, "words", {"id": {1, 2}}], ids=repr)
async def test_a_result_off_its_schema_after_an_effect_is_performed_and_unreadable(database: str, odd: object) -> None:
    world = World()

    async def off(_ctx: CallContext, _args: Any) -> Any:
        return odd

    async with harness(tools=[world.write(does=off)], script=[SAVE, SAVE, Say("Done.")], database_url=database) as h:
        run_id = await h.start()
        assert (await h.settle(run_id)).state == "succeeded"
        assert len(world.effects) == 1
        first, second = await answers(h, run_id)
        assert first == second
        assert first["ok"] is True
        assert "Do not repeat" in first["meta"]["unreadable"]
        [claim] = await journal(h, run_id)
        assert claim["state"] == "completed"


@pytest.mark.guarantee("B1")
async def test_a_huge_result_is_bounded_whole_and_kept_as_an_artifact(database: str) -> None:
    async def huge(ctx: CallContext, args: Any) -> Any:
        return {"id": "x", "body": "😀" * 3_000_000, "rows": [{"n": n, "text": "r" * 100} for n in range(3_000)]}

    world = World()
    script: list[Turn] = [Calls([Call("crm.search", {"text": "a"})]), SAVE, Say("Done.")]
    tools = [world.read(does=huge), world.write(does=huge)]
    async with harness(tools=tools, script=script, database_url=database) as h:
        run_id = await h.start()
        assert (await h.settle(run_id)).state == "succeeded"
        read, write = [text for role, text in await h.messages(run_id) if role == "tool"]
        for text in (read, write):
            assert len(text.encode()) < 33 * 1024
            assert json.loads(text)["meta"]["truncated"] is True
        kept = await rows(h, "select complete, size_bytes from agent.artifacts")
        assert len(kept) == 2
        assert all(artifact["size_bytes"] <= 4 * 32 * 1024 for artifact in kept)
        for span in await h.calls(run_id):
            assert len((span["output"] or "").encode()) <= 4 * 1024


class Anything(BaseModel):
    value: Any = None


@internal_tool("odd.echo", "Echoes.", side_effects="write", risk="low", repeatable=False)
async def echo(ctx: CallContext, args: Anything) -> Any:
    return ODD[args.value]


@internal_tool("odd.look", "Looks.")
async def look(ctx: CallContext, args: Anything) -> Any:
    return ODD[args.value]


class _Surly:
    def __str__(self) -> str:
        raise RuntimeError("no")


ODD: Mapping[str, Any] = {
    "nul": "%PDF\x00\x01",
    "key": {"k\x00ey": 1, "k␀ey": 2},
    "literal": "\\u0000",
    "nan": {"score": float("nan"), "max": float("inf")},
    "surrogate": {"\ud800": "\udfff half"},
    "surly": _Surly(),
    "bytes": b"\xff\x00",
}


@pytest.mark.guarantee("J4", "B1")
async def test_values_postgres_refuses_never_cost_a_row(database: str) -> None:
    looks = [Call("odd.look", {"value": which}) for which in ODD]
    acts = [Call("odd.echo", {"value": which}) for which in ODD]
    script: list[Turn] = [Calls(looks), Calls(acts), Say("x\x00y \ud800")]
    async with harness(tools=[echo, look], script=script, database_url=database) as h:
        run_id = await h.start("go \x00 on")
        settled = await h.settle(run_id)
        assert settled.state == "succeeded"
        assert settled.answer is not None
        assert settled.answer.startswith("x␀y ")
        read = await answers(h, run_id)
        assert [answer["ok"] for answer in read] == [True] * 2 * len(ODD)
        claims = await journal(h, run_id)
        assert [(claim["state"], claim["outcome_status"]) for claim in claims] == [("completed", "ok")] * len(ODD)
        by_value = dict(zip([*ODD, *ODD], (answer["data"] for answer in read), strict=True))
        assert by_value["literal"] == "\\u0000"
        assert sorted(by_value["key"].values()) == [1, 2]


async def test_arguments_postgres_refuses_are_refused_before_anything_runs(database: str) -> None:
    texts = [
        '{"value": "a\\u0000b"}',
        '{"value": "\\ud800"}',
        '{"value": NaN}',
        '{"value": -0.0}',
        '{"va\\u0000lue": 1}',
    ]
    script: list[Turn] = [Calls([Call("odd.echo", text) for text in texts]), Say("Done.")]
    async with harness(tools=[echo], script=script, database_url=database) as h:
        run_id = await h.start()
        assert (await h.settle(run_id)).state == "succeeded"
        assert {answer["reason_code"] for answer in await answers(h, run_id)} == {"invalid_input"}
        assert len(await h.calls(run_id)) == len(texts)
        assert await journal(h, run_id) == []


async def test_a_tool_name_that_is_no_text_is_answered_too(database: str) -> None:
    world = World()
    names = ["a\x00b", "x" * 5000, ""]
    turn = Calls([Call("notes.save", {"text": str(n)}) for n in range(len(names))])
    async with harness(tools=[world.write()], script=[turn, Say("Done.")], database_url=database) as h:
        run_id = await h.start()
        loop = h.platform.loop
        original = loop.open_calls

        def renamed(*args: Any) -> Any:
            calls = original(*args)
            return [replace(c, tool=names[c.ordinal], model_name=names[c.ordinal], fault="unknown_tool") for c in calls]

        loop.open_calls = renamed  # type: ignore[method-assign, assignment]
        assert (await h.settle(run_id)).state == "succeeded"
        assert [answer["reason_code"] for answer in await answers(h, run_id)] == ["unknown_tool"] * len(names)
        assert world.effects == []


class NoSuchPerson(Exception):
    """A leaf exception of the domain."""

    def __init__(self, words: str) -> None:
        self.words = words

    def __str__(self) -> str:
        if self.words == "surly":
            raise RuntimeError("no words")
        return self.words


@pytest.mark.guarantee("J6", "B3")
@pytest.mark.parametrize(
    "words", ["nul \x00 here", "half \ud800", "x" * 6_000_000, "surly"], ids=["nul", "half", "huge", "surly"]
)
async def test_a_stable_refusal_is_remembered_whatever_its_words_are(database: str, words: str) -> None:
    world = World()

    async def refuse(_ctx: CallContext, _args: Any) -> Any:
        raise NoSuchPerson(words)

    tool = world.write(does=refuse, refusals={NoSuchPerson: ErrorCode.NOT_FOUND})
    async with harness(tools=[tool], script=[SAVE, SAVE, Say("Done.")], database_url=database) as h:
        run_id = await h.start()
        assert (await h.settle(run_id)).state == "succeeded"
        assert len(world.effects) == 1
        first, second = await answers(h, run_id)
        assert first == second
        assert first["reason_code"] == "not_found"
        texts = [text for role, text in await h.messages(run_id) if role == "tool"]
        assert all(len(text) < 4000 for text in texts)


@pytest.mark.guarantee("J6")
async def test_a_retryable_refusal_leaves_no_claim_and_the_same_call_runs_again(database: str) -> None:
    world = World()

    async def busy_once(_ctx: CallContext, _args: Any) -> Any:
        if len(world.effects) == 1:
            raise RetryableUpstreamError("throttled", external_text="slow \x00 down \ud800")
        return Done(id="1")

    async with harness(
        tools=[world.write(does=busy_once)], script=[SAVE, SAVE, Say("Done.")], database_url=database
    ) as h:
        run_id = await h.start()
        assert (await h.settle(run_id)).state == "succeeded"
        assert [a.get("reason_code", "ok") for a in await answers(h, run_id)] == ["retryable_upstream", "ok"]
        assert len(set(world.keys)) == 2  # nothing happened, so a new epoch
        assert [e["kind"] for e in (await h.tree(run_id)).effects] == ["released", "completed"]


async def test_a_definite_refusal_is_remembered(database: str) -> None:
    world = World()

    async def refuse(_ctx: CallContext, _args: Any) -> Any:
        raise UpstreamUnavailableError("no such host")

    async with harness(tools=[world.write(does=refuse)], script=[SAVE, SAVE, Say("x")], database_url=database) as h:
        run_id = await h.start()
        assert (await h.settle(run_id)).state == "succeeded"
        assert len(world.effects) == 1
        assert [a["reason_code"] for a in await answers(h, run_id)] == ["unavailable", "unavailable"]


class Login(BaseModel):
    user: str
    password: str


@internal_tool("vault.login", "Logs in.", side_effects="write", risk="low", repeatable=False)
async def login(ctx: CallContext, args: Login) -> Any:
    ctx.secrets = ("tok-SECRET-2",)
    return {"api_key": "SECRET-3", "note": "got tok-SECRET-2", "user": args.user}


@pytest.mark.guarantee("B2")
async def test_no_secret_stands_in_spans_journal_answers_or_messages_of_tools(database: str) -> None:
    script: list[Turn] = [Calls([Call("vault.login", {"user": "per", "password": "SECRET-1"})]), Say("In.")]
    async with harness(tools=[login], script=script, database_url=database) as h:
        run_id = await h.start()
        assert (await h.settle(run_id)).state == "succeeded"
        [span] = await h.calls(run_id)
        assert "SECRET" not in json.dumps(span, default=str)
        [claim] = await journal(h, run_id)
        assert b"SECRET" not in claim["output"]
        assert "SECRET" not in json.dumps(await answers(h, run_id))


class Flag(BaseModel):
    value: str
    maybe: str | None = None


@pytest.mark.guarantee("N2")
async def test_strings_that_look_like_literals_reach_the_handler_as_they_are(database: str) -> None:
    seen: list[Any] = []

    @internal_tool("flags.set", "Sets.", side_effects="write", risk="low", repeatable=False)
    async def set_flag(ctx: CallContext, args: Flag) -> Done:
        seen.append((args.value, args.maybe))
        return Done(id="1")

    words = ["None", "true", " FALSE ", "Null", "1", "{}"]
    script: list[Turn] = [Calls([Call("flags.set", {"value": word, "maybe": word}) for word in words]), Say("Done.")]
    async with harness(tools=[set_flag], script=script, database_url=database) as h:
        run_id = await h.start()
        assert (await h.settle(run_id)).state == "succeeded"
        assert seen == [(word, word) for word in words]


@pytest.mark.guarantee("T2")
async def test_the_model_passes_no_identity_and_no_key(database: str) -> None:
    world = World()
    smuggled = {"text": "a", "organization_id": "x", "user_id": "x", "run_id": "x", "idempotency_key": "x"}
    script: list[Turn] = [
        Calls([Call("notes.save", smuggled)]),
        Calls([Call("notes.save", {"text": "a"})]),
        Say("Done."),
    ]
    async with harness(tools=[world.write()], script=script, database_url=database) as h:
        run_id = await h.start()
        assert (await h.settle(run_id)).state == "succeeded"
        assert [a.get("reason_code", "ok") for a in await answers(h, run_id)] == ["invalid_input", "ok"]
        [context] = world.contexts
        assert (context.organization_id, context.principal.user_id, context.run_id) == (
            h.organization_id,
            h.user_id,
            run_id,
        )
        assert context.idempotency_key is not None
        assert len(context.idempotency_key) == 64


@pytest.mark.guarantee("J3")
async def test_a_handler_that_cancels_itself_is_a_handler_that_failed(database: str) -> None:
    world = World()

    async def cancels(_ctx: CallContext, _args: Any) -> Any:
        raise asyncio.CancelledError

    async with harness(tools=[world.write(does=cancels)], script=[SAVE, Say("Done.")], database_url=database) as h:
        run_id = await h.start()
        settled = await h.settle(run_id)
        assert (settled.state, settled.partial_reason) == ("succeeded", "outcome_unknown: notes.save")
        assert len(world.effects) == 1
        assert len(await h.uncertain(run_id)) == 1


async def test_a_read_that_raises_comes_back_after_a_wait_and_ends_as_a_crash_loop(database: str) -> None:
    world = World()

    async def raises(_ctx: CallContext, _args: Any) -> Any:
        raise KeyError("a defect of the tool")

    script: list[Turn] = [Calls([Call("crm.search", {"text": "a"})]), Say("Done.")]
    async with harness(tools=[world.read(does=raises)], script=script, database_url=database) as h:
        run_id = await h.start()
        settled = await h.settle(run_id)
        assert (settled.state, settled.error_code) == ("failed", "crash_loop")
        assert len(world.effects) == 5


@pytest.mark.guarantee("D3")
async def test_reads_of_a_turn_that_are_refused_side_by_side_are_all_recorded(database: str) -> None:
    world = World()
    turn = Calls([Call("crm.search", {"text": str(n)}) for n in range(16)])
    async with harness(tools=[world.read()], script=[turn, Say("Done.")], database_url=database) as h:
        run_id = await h.start()
        await h.platform.catalogue.set_grant(h.organization_id, "tested", "crm.search", active=False)
        assert (await h.settle(run_id)).state == "succeeded"
        assert {a["reason_code"] for a in await answers(h, run_id)} == {"denied"}
        decisions = (await h.tree(run_id)).decisions
        assert [decision["seq"] for decision in decisions] == list(range(1, 17))
        assert len(await h.calls(run_id)) == 16


async def test_external_content_makes_a_medium_write_ask_under_its_floor(database: str) -> None:
    world = World()
    script: list[Turn] = [
        Calls([Call("crm.search", {"text": "a"})]),
        Calls([Call("deals.update", {"text": "b"})]),
        Say("Done."),
    ]
    tools = [world.read(output_trust=Trust.EXTERNAL), world.write("deals.update", risk="medium")]
    async with harness(tools=tools, script=script, database_url=database) as h:
        run_id = await h.start()
        parked = await h.settle(run_id)
        assert parked.state == "parked"
        [question] = parked.pending
        assert question.rule_id == "floor.external"
        tree = await h.tree(run_id)
        assert tree.run["context_trust"] == "external"
        assert [decision["context_trust"] for decision in tree.decisions] == ["user", "external"]
        assert "external" in (await answers(h, run_id))[0]


class Counting:
    """A database that counts what is sent to it."""

    def __init__(self, inner: Database) -> None:
        self.inner = inner
        self.statements: list[str] = []

    @property
    def pool(self) -> Any:
        return self.inner.pool

    async def one(self, statement: Any, params: Any) -> Any:
        self.statements.append(statement)
        return await self.inner.one(statement, params)

    async def all(self, statement: Any, params: Any) -> Any:
        self.statements.append(statement)
        return await self.inner.all(statement, params)

    async def count(self, statement: Any, params: Any) -> Any:
        self.statements.append(statement)
        return await self.inner.count(statement, params)

    @property
    def commits(self) -> int:
        return sum(
            any(word in statement for word in ("insert into", "update agent", "delete from"))
            for statement in self.statements
        )


async def test_a_write_takes_two_commits_a_replay_one_statement_and_a_read_no_commit(database: str) -> None:
    world = World()
    seen: list[tuple[str, int, int]] = []
    script: list[Turn] = [SAVE, SAVE, Calls([Call("crm.search", {"text": "a"})]), Say("Done.")]
    async with harness(tools=[world.write(), world.read()], script=script, database_url=database) as h:
        ledger = h.platform.invoker._ledger
        counting = Counting(ledger._db)  # type: ignore[attr-defined]
        ledger._db = counting  # type: ignore[attr-defined]
        invoke = h.platform.invoker.invoke

        async def counted(call: Any, inv: Any) -> Any:
            counting.statements.clear()
            result = await invoke(call, inv)
            seen.append((call.tool, len(counting.statements), counting.commits))
            return result

        h.platform.invoker.invoke = counted  # type: ignore[method-assign]
        run_id = await h.start()
        assert (await h.settle(run_id)).state == "succeeded"
        assert seen == [("notes.save", 3, 2), ("notes.save", 1, 0), ("crm.search", 1, 0)]
