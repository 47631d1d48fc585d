"""What a run of a session begins with goes out in every provider's format, each message once, in order and under its role."""

from typing import Any

import pytest
from agno_dialects import ALL, Dialect
from agno_stage import StagedRun
from agno_wire import Reply, provider

from agentic.contract.trust import Trust
from agentic.runtime.agent.ports import TurnCompleted

SPOKEN = [
    ("user", "[Note] 4 earlier messages are left out."),
    ("user", "Who is {Per}?"),
    ("assistant", "Per works at the fjord.\n"),
    ("user", "And Åse?"),
    ("assistant", "Åse does too."),
]


def said(body: dict[str, Any]) -> list[tuple[str, str]]:
    """Role and text of every message of a request but the system's, with neighbours of one role as one."""
    listed = body.get("messages") or body.get("input") or body.get("contents") or []
    merged: list[tuple[str, str]] = []
    for message in listed:
        role = {"model": "assistant"}.get(message["role"], message["role"])
        if role in ("system", "developer"):
            continue
        content = message.get("content") or message.get("parts")
        text = content if isinstance(content, str) else "".join(part["text"] for part in content)
        if merged and merged[-1][0] == role:
            merged[-1] = (role, merged[-1][1] + text)
        else:
            merged.append((role, text))
    return merged


@pytest.mark.parametrize("dialect", ALL, ids=lambda dialect: dialect.name)
@pytest.mark.parametrize("stream", [True, False], ids=["stream", "plain"])
async def test_earlier_words_and_answers_are_sent_in_order_and_the_answer_to_the_new_ones_is_taken(
    dialect: Dialect, stream: bool
) -> None:
    with provider([Reply(text="Ola.")], dialect.encode(stream)) as endpoint:
        run = StagedRun(lambda: dialect.model(endpoint.base_url), say="Who else?", stream=stream)
        loop = run.loop()
        earlier = [
            loop.quoted("user" if role == "user" else "assistant", text, Trust.EXTERNAL) for role, text in SPOKEN
        ]
        run.log = [*earlier, *run.log]
        end = await run.turn()
        [body] = endpoint.bodies
    assert isinstance(end, TurnCompleted)
    assert end.text == "Ola."
    assert len({message.id for message in run.log}) == len(run.log) == len(SPOKEN) + 2
    heard = [(role, text.replace(" ", "").strip()) for role, text in said(body)]
    assert heard == [
        ("user", (SPOKEN[0][1] + SPOKEN[1][1]).replace(" ", "")),
        ("assistant", "Perworksatthefjord."),
        ("user", "AndÅse?"),
        ("assistant", "Åsedoestoo."),
        ("user", "Whoelse?"),
    ]
