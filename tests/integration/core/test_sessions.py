"""What a run of a session begins with: the words and answers of the person's earlier runs, once and for good (ADR 0032)."""

import asyncio
from collections.abc import Sequence
from typing import Any
from uuid import UUID, uuid4

import pytest

from agentic.contract.errors import Conflict, ProgramFault
from agentic.contract.principal import Principal, Role
from agentic.contract.trust import Trust
from agentic.runtime.agent.script import SeenMessage, Turn
from agentic.testing import Call, Calls, Harness, Say, harness
from core_world import World, execute, rows

Seen = list[list[tuple[str, str]]]


def talker(seen: Seen) -> list[Turn]:
    """A model that tells the test what it was shown, looks or writes when it is told to, and answers with an echo of the last words."""

    def turn(history: Sequence[SeenMessage]) -> Say | Calls:
        seen.append([(message.role, message.text) for message in history[1:]])
        last = history[-1]
        if last.role == "user" and last.text.startswith("do "):
            return Calls([Call(last.text.removeprefix("do "), {"text": "x"})])
        asked = [message.text for message in history if message.role == "user"][-1]
        return Say(f"heard {asked}")

    return [turn] * 200


async def say(h: Harness, text: str, *, session: str | None = "s", user_id: UUID | None = None, key: str = "") -> UUID:
    started = await h.platform.runs.start(
        h.agent,
        text,
        principal=Principal(organization_id=h.organization_id, user_id=user_id or h.user_id),
        request_key=key or str(uuid4()),
        session=session,
    )
    return started.run_id


async def log(h: Harness, run_id: UUID) -> list[dict[str, Any]]:
    return await rows(
        h,
        "select role, trust::text as trust, fence, message_id from agent.run_messages where run_id = %(run_id)s order by seq",
        run_id=run_id,
    )


async def test_a_run_begins_with_what_earlier_runs_of_its_session_said_in_order(database: str) -> None:
    seen: Seen = []
    async with harness(tools=[], script=talker(seen), database_url=database) as h:
        for words in ("one", "two"):
            assert (await h.settle(await say(h, words))).state == "succeeded"
        third = await say(h, "three")
        assert (await h.settle(third)).answer == "heard three"
        assert seen[-1] == [
            ("user", "one"),
            ("assistant", "heard one"),
            ("user", "two"),
            ("assistant", "heard two"),
            ("user", "three"),
        ]
        await h.settle(await say(h, "alone", session=None))
        assert seen[-1] == [("user", "alone")]


@pytest.mark.guarantee("T1")
async def test_a_session_of_the_same_name_of_another_person_or_organization_is_another(database: str) -> None:
    seen: Seen = []
    async with harness(tools=[], script=talker(seen), database_url=database) as h:
        await h.settle(await say(h, "mine"))
        other = uuid4()
        await h.platform.approval_store.put_member(h.organization_id, other, Role.MEMBER)
        await h.settle(await say(h, "theirs", user_id=other))
        assert seen[-1] == [("user", "theirs")]
        h.organization_id = uuid4()
        await h.settle(await say(h, "elsewhere"))
        assert seen[-1] == [("user", "elsewhere")]


async def test_two_runs_of_a_session_at_once_never_see_a_half_of_each_other(database: str) -> None:
    seen: Seen = []
    world = World()
    async with harness(tools=[world.send()], script=talker(seen), database_url=database) as h:
        paused, other = await say(h, "do mail.send"), await say(h, "do mail.send")
        assert [(await h.settle(run)).state for run in (paused, other)] == ["parked", "parked"]
        between = await say(h, "are you there?")
        await h.settle(between)
        assert seen[-1] == [("user", "are you there?")]
        for run in (paused, other):
            await h.decide(run)
        settled = await asyncio.gather(h.settle(paused), h.settle(other))
        assert [each.state for each in settled] == ["succeeded", "succeeded"]
        assert world.of("mail.send") == ["x", "x"]
        assert [[role for role, _ in await h.messages(run)] for run in (paused, other)] == [
            ["user", "assistant", "tool", "assistant"]
        ] * 2
        await h.settle(await say(h, "and now?"))
        assert [text for _, text in seen[-1]] == [
            "do mail.send",
            "heard do mail.send",
            "do mail.send",
            "heard do mail.send",
            "are you there?",
            "heard are you there?",
            "and now?",
        ]


async def test_nothing_that_happens_to_an_earlier_run_changes_what_a_later_one_began_with(database: str) -> None:
    seen: Seen = []
    async with harness(tools=[], script=talker(seen), database_url=database) as h:
        first = await say(h, "one")
        await h.settle(first)
        second = await say(h, "two")
        await execute(h, "update agent.runs set answer = 'something else' where id = %(id)s", id=first)
        await execute(h, "delete from agent.run_messages where run_id = %(id)s", id=first)
        await h.settle(second)
        assert seen[-1] == [("user", "one"), ("assistant", "heard one"), ("user", "two")]


@pytest.mark.guarantee("B3")
async def test_an_answer_is_believed_no_more_than_what_its_run_had_read(database: str) -> None:
    seen: Seen = []
    world = World()
    tools = [world.read("web.read", output_trust=Trust.EXTERNAL), world.write()]
    async with harness(tools=tools, script=talker(seen), database_url=database) as h:
        await h.settle(await say(h, "do web.read"))
        later = await say(h, "hello")
        assert [(row["role"], row["trust"]) for row in await log(h, later)] == [
            ("user", "user"),
            ("assistant", "external"),
            ("user", "user"),
        ]
        [row] = await rows(h, "select context_trust::text as trust from agent.runs where id = %(id)s", id=later)
        assert row["trust"] == "external"
        fresh = await say(h, "hello", session="another")
        [row] = await rows(h, "select context_trust::text as trust from agent.runs where id = %(id)s", id=fresh)
        assert row["trust"] == "user"


async def test_a_long_session_keeps_its_newest_whole_messages_and_says_how_many_are_left_out(database: str) -> None:
    seen: Seen = []
    async with harness(tools=[], script=talker(seen), database_url=database) as h:
        await h.settle(await say(h, "old"))
        await h.settle(await say(h, "x" * 20_000))  # its answer fits, it does not fit beside it
        await h.settle(await say(h, "new"))
        await h.settle(await say(h, "last"))
        note, *rest = seen[-1]
        assert note[0] == "user"
        assert "3 earlier messages are left out" in note[1]
        assert [role for role, _ in rest] == ["assistant", "user", "assistant", "user"]
        assert rest[1:] == [("user", "new"), ("assistant", "heard new"), ("user", "last")]
        assert len(rest[0][1]) == len("heard ") + 20_000


async def test_of_many_runs_the_newest_twenty_count(database: str) -> None:
    seen: Seen = []
    async with harness(tools=[], script=talker(seen), database_url=database) as h:
        for number in range(22):
            await h.settle(await say(h, f"n{number}"))
        await h.settle(await say(h, "now"))
        note, first, *_ = seen[-1]
        assert "4 earlier messages" in note[1]
        assert first == ("user", "n2")
        assert len(seen[-1]) == 1 + 40 + 1


async def test_a_run_of_words_that_this_release_cannot_read_costs_the_later_one_nothing_else(database: str) -> None:
    seen: Seen = []
    async with harness(tools=[], script=talker(seen), database_url=database) as h:
        old, broken = await say(h, "old"), await say(h, "broken", session="t")
        await h.settle(old)
        await h.settle(broken)
        await execute(h, "update agent.run_messages set format = 'other/0' where run_id = %(id)s", id=old)
        await execute(h, "update agent.run_messages set body = 'no json'::bytea where run_id = %(id)s", id=broken)
        for session in ("s", "t"):
            assert (await h.settle(await say(h, "new", session=session))).state == "succeeded"
            assert "2 earlier messages" in seen[-1][0][1]
            assert seen[-1][1:] == [("user", "new")]


@pytest.mark.guarantee("J3")
async def test_a_call_of_an_earlier_run_whose_outcome_nobody_knows_is_named_until_somebody_does(database: str) -> None:
    seen: Seen = []
    world = World()

    async def breaks(_ctx: object, _args: object) -> object:
        raise ConnectionResetError("the line broke")

    async with harness(tools=[world.write(does=breaks)], script=talker(seen), database_url=database) as h:
        run_id = await say(h, "do notes.save")
        assert (await h.settle(run_id)).partial_reason == "outcome_unknown: notes.save"
        later = await say(h, "again?")
        await h.settle(later)
        *_, note, asked = seen[-1]
        assert asked == ("user", "again?")
        assert note[0] == "user"
        assert "notes.save" in note[1]
        assert "Do not repeat" in note[1]
        assert (await log(h, later))[-3]["trust"] == "platform"  # the note, then the words, then the answer
        [call] = await h.uncertain(run_id)
        await h.platform.journal.settle(
            h.organization_id, call.ref, happened=True, user_id=h.user_id, evidence="it is in the list"
        )
        await h.settle(await say(h, "and now?"))
        assert not any("notes.save" in text and "may not" in text for _, text in seen[-1])


async def test_the_same_key_in_another_session_is_another_input(database: str) -> None:
    async with harness(tools=[], script=talker([]), database_url=database) as h:
        first = await say(h, "one", key="k")
        await h.settle(first)
        await h.settle(await say(h, "two"))
        assert await say(h, "one", key="k") == first  # though the session has gone on
        for session in (None, "t"):
            with pytest.raises(Conflict, match="another input"):
                await say(h, "one", key="k", session=session)


@pytest.mark.parametrize("session", ["", "s" * 201, "a\x00b"])
async def test_a_session_that_no_row_can_hold_is_refused_in_words(database: str, session: str) -> None:
    async with harness(tools=[], script=[], database_url=database) as h:
        with pytest.raises(ProgramFault, match="session has 1 to 200"):
            await say(h, "one", session=session)
