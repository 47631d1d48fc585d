"""``email.send`` through the real invoker against the mail provider's stand-in."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from agentic.local.demo.email_tool import email_tool
from agentic.local.demo.settings import MailAccount
from agentic.local.providers.mail import MailServer, MailStore
from agentic.runtime.agent.script import Call, Calls, Say, Turn
from agentic.services.tools.declarations import Tool
from agentic.testing.harness import harness

KEY, GRANT = "a-mail-key-of-a-test", "11111111-1111-4111-8111-111111111111"
SCRIPT: list[Turn] = [
    Calls([Call("email.send", {"to": "per@fjord.example", "subject": "Hello", "body": "Hi Per"})]),
    Say("done"),
]


@pytest.fixture
async def mail() -> AsyncIterator[MailServer]:
    async with MailServer(store=MailStore(), api_key=KEY, grant_id=GRANT) as server:
        yield server


def _tool(mail: MailServer, *, vendor_key: bool = True) -> Tool:
    return email_tool(MailAccount(url=mail.url, key=KEY, grant=GRANT), vendor_key=vendor_key, timeout_s=5)


async def _sent(database: str, tool: Tool, *, key: str = KEY) -> dict[str, Any]:
    """Run the script, approve, and go on to the end; the last call of the tool."""
    async with harness(tools=[tool], script=SCRIPT, database_url=database, connections={"mail": key}) as h:
        run_id = await h.start("write to Per")
        await h.settle(run_id)
        asked = await h.platform.approvals.find(h.organization_id)
        assert [approval.shown for approval in asked] == ["Email to per@fjord.example: Hello"]
        await h.decide(run_id)
        await h.settle(run_id)
        return dict((await h.calls(run_id, "email.send"))[-1])


@pytest.mark.guarantee("A1")
async def test_an_approved_email_goes_out_once_with_the_key_of_its_call(mail: MailServer, database: str) -> None:
    call = await _sent(database, _tool(mail))
    assert call["status"] == "ok"
    assert [(message.to, message.subject) for message in mail.store.messages] == [(("per@fjord.example",), "Hello")]
    (attempt,) = mail.store.attempts
    assert attempt.key


@pytest.mark.guarantee("J7")
async def test_an_indefinite_error_is_asked_again_with_the_same_key_and_the_same_bytes(
    mail: MailServer, database: str
) -> None:
    mail.store.fail_next(status=500, remembered=False)
    await _sent(database, _tool(mail))
    keys, bodies = ({attempt.key for attempt in mail.store.attempts}, {attempt.body for attempt in mail.store.attempts})
    assert len(mail.store.attempts) == 2
    assert len(mail.store.messages) == 1
    assert len(keys) == len(bodies) == 1


@pytest.mark.guarantee("J6")
async def test_throttling_is_no_effect_and_the_model_reads_that_it_may_try_later(
    mail: MailServer, database: str
) -> None:
    mail.store.fail_next(status=429, retry_after=1, remembered=False)
    call = await _sent(database, _tool(mail))
    assert call["code"] == "retryable_upstream"
    assert mail.store.messages == []


@pytest.mark.guarantee("J3")
async def test_without_a_key_an_error_that_may_hide_an_effect_is_not_asked_again(
    mail: MailServer, database: str
) -> None:
    mail.store.fail_next(status=504, after_accept=True)
    call = await _sent(database, _tool(mail, vendor_key=False))
    assert call["status"] == "unknown"
    assert len(mail.store.messages) == len(mail.store.attempts) == 1
    assert mail.store.attempts[0].key is None


async def test_a_mailbox_that_refuses_the_key_is_a_connection_to_be_repaired(mail: MailServer, database: str) -> None:
    call = await _sent(database, _tool(mail), key="wrong-key-of-the-test")
    assert call["code"] == "connection_expired"
    assert mail.store.messages == []
