"""Every way a send can end, over real HTTP: it leaves at most once, and nothing but a definite answer says that it did not."""

import asyncio
import json
from typing import Any
from uuid import UUID

import pytest
from pydantic import BaseModel

from agentic.local.providers.mail import MailServer
from agentic.services.connections.envelope import VaultKeys
from agentic.services.connections.secrets import ApiKey
from agentic.services.connections.service import ConnectionService
from agentic.services.policy import Fact, RuleDraft
from agentic.services.tools.context import CallContext
from agentic.services.tools.handlers.email import Email
from agentic.storage.connection_store import PostgresConnectionStore
from agentic.testing import Harness
from core_world import journal, rows
from email_stage import GRANT, KEY, LETTER, Mailboxes, held, led, opened, time_passes
from money import lines

SEND = ("email.send", LETTER)
VAULT_KEY = "AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE="


def keys(mail: MailServer) -> set[str | None]:
    """The keys of all requests so far."""
    return {attempt.key for attempt in mail.store.attempts}


def same_request(mail: MailServer) -> bool:
    """Whether all requests so far carried one key and the same bytes."""
    return len(keys(mail)) == len({attempt.body for attempt in mail.store.attempts}) == 1


@pytest.mark.guarantee("A6", "M1")
async def test_an_approved_email_leaves_once_with_its_key_and_is_counted_once(database: str, mail: MailServer) -> None:
    letter = {**LETTER, "to": ["per@fjord.example", "ida@nordlys.example"], "bcc": ["PER@fjord.example"]}
    async with opened(database, mail, ("email.send", letter)) as h:
        told = await led(h)
        usage = await lines(h, told.run_id)
        [claim] = await journal(h, told.run_id)
    [sent] = mail.store.messages
    [attempt] = mail.store.attempts
    assert told.shown == [
        "one message from nylas to 2 new recipients: per@fjord.example, ida@nordlys.example; subject: Hello"
    ]
    assert told.data == {"message_id": sent.id, "thread_id": sent.thread_id}
    assert json.loads(attempt.body) == {
        "to": [{"email": "per@fjord.example"}, {"email": "ida@nordlys.example"}],
        "bcc": [{"email": "PER@fjord.example"}],
        "subject": "Hello",
        "body": "Hi Per",
        "is_plaintext": True,
    }
    assert attempt.key is not None
    assert claim["vendor_key_ttl_s"] == 3300
    assert [(line["quantity"], line["unit"], line["provider"]) for line in usage] == [(1, "email", "nylas")]


@pytest.mark.guarantee("J7", "M1")
async def test_an_email_whose_answer_was_lost_is_asked_for_again_under_its_key_and_left_once(
    database: str, mail: MailServer
) -> None:
    mail.store.lose_next()
    async with opened(database, mail, SEND) as h:
        told = await led(h)
        usage = await lines(h, told.run_id)
    assert told.codes == ["ok"]
    assert [attempt.replayed for attempt in mail.store.attempts] == [False, True]
    assert same_request(mail)
    assert len(mail.store.messages) == len(usage) == 1


@pytest.mark.guarantee("J7")
@pytest.mark.parametrize("status", [500, 502, 504])
async def test_an_error_that_may_hide_an_email_is_repeated_with_the_same_key_and_bytes(
    database: str, mail: MailServer, status: int
) -> None:
    mail.store.fail_next(status=status, remembered=False)
    async with opened(database, mail, SEND) as h:
        told = await led(h)
    assert told.codes == ["ok"]
    assert len(mail.store.attempts) == 2
    assert same_request(mail)
    assert len(mail.store.messages) == 1


@pytest.mark.guarantee("J7", "J3")
async def test_an_error_that_the_vendor_remembers_is_uncertain_once_its_hour_is_over(
    database: str, mail: MailServer
) -> None:
    """The email left behind a 504 that is replayed: a new key would send it again, and the old one protects no longer."""
    mail.store.fail_next(status=504, after_accept=True)
    async with opened(database, mail, SEND) as h:
        run_id = await held(h)
        assert [attempt.replayed for attempt in mail.store.attempts] == [False, True, True]
        await time_passes(h, hour=True)
        told = await led(h, run_id)
        [call] = await h.uncertain(run_id)
    assert told.codes == ["outcome_unknown"]
    assert told.partial_reason == "outcome_unknown: email.send"
    assert call.tool == "email.send"
    assert len(mail.store.attempts) == 3
    assert same_request(mail)
    assert len(mail.store.messages) == 1


@pytest.mark.guarantee("J7", "J3")
async def test_a_held_email_is_asked_for_again_within_the_hour_and_left_once(database: str, mail: MailServer) -> None:
    mail.store.fail_next(status=504, remembered=False, times=2)
    mail.store.fail_next(status=504, remembered=False, after_accept=False)
    async with opened(database, mail, SEND) as h:
        run_id = await held(h)
        await time_passes(h)
        told = await led(h, run_id)
    assert told.codes == ["ok"]
    assert len(mail.store.attempts) == 4
    assert same_request(mail)
    assert len(mail.store.messages) == 1


@pytest.mark.guarantee("J7")
@pytest.mark.parametrize(
    ("timeout_s", "attempt_s"), [pytest.param(30, 3, id="repeated in place"), pytest.param(3, 40, id="held")]
)
async def test_a_provider_that_goes_silent_after_the_email_left_is_asked_again_under_the_key(
    database: str, mail: MailServer, timeout_s: float, attempt_s: float
) -> None:
    hold = mail.store.hang_after_accept()
    async with opened(database, mail, SEND, send_timeout_s=timeout_s, send_attempt_s=attempt_s, claim_grace_s=0.1) as h:
        told = await led(h)
    assert hold.reached.is_set()
    assert told.codes == ["ok"]
    assert [attempt.replayed for attempt in mail.store.attempts] == [False, True]
    assert same_request(mail)
    assert len(mail.store.messages) == 1


@pytest.mark.guarantee("J7")
async def test_a_repeat_that_meets_the_first_request_still_running_waits_for_it(
    database: str, mail: MailServer
) -> None:
    hold = mail.store.hang_before_accept()
    left = asyncio.Event()
    mail.store.on_accepted = lambda _: left.set()
    async with opened(database, mail, SEND, send_attempt_s=3) as h:
        run_id = await held(h)
        assert [attempt.status for attempt in mail.store.attempts[1:]] == [409, 409]
        hold.release.set()
        async with asyncio.timeout(20):
            await left.wait()
        await time_passes(h)
        told = await led(h, run_id)
    assert told.codes == ["ok"]
    assert same_request(mail)
    assert len(mail.store.messages) == 1


@pytest.mark.guarantee("J6", "J7")
@pytest.mark.parametrize("retry_after", [None, 30])
async def test_a_throttled_email_did_not_leave_and_the_next_try_has_a_key_without_a_stored_answer(
    database: str, mail: MailServer, retry_after: int | None
) -> None:
    mail.store.fail_next(status=429, retry_after=retry_after)  # remembered: the same key would be throttled for an hour
    async with opened(database, mail, SEND, SEND) as h:
        told = await led(h)
    assert told.codes == ["retryable_upstream", "ok"]
    assert len(keys(mail)) == len(mail.store.attempts) == 2
    assert len(mail.store.messages) == 1


@pytest.mark.guarantee("J3")
async def test_a_refusal_of_the_repeat_does_not_say_that_the_first_request_did_nothing(
    database: str, mail: MailServer
) -> None:
    mail.store.fail_next(status=504, after_accept=True, remembered=False)
    mail.store.fail_next(status=429, times=5)
    async with opened(database, mail, SEND) as h:
        run_id = await held(h)
        await time_passes(h, hour=True)
        told = await led(h, run_id)
    assert told.codes == ["outcome_unknown"]
    assert same_request(mail)
    assert len(mail.store.messages) == 1


@pytest.mark.guarantee("J6")
@pytest.mark.parametrize(
    ("status", "type", "code"),
    [
        (400, "invalid_request_error", "upstream_refused"),
        (400, "token.unauthorized_access", "permission_refused"),
        (402, "api.message_rejected", "upstream_refused"),
        (403, "insufficient_scopes", "connection_expired"),
        (404, "not_found_error", "connection_expired"),
        (423, "api.resource_blocked", "unavailable"),
    ],
)
async def test_a_definite_refusal_ends_the_call_with_its_code_and_is_not_asked_again(
    database: str, mail: MailServer, status: int, type: str, code: str
) -> None:
    mail.store.fail_next(status=status, type=type)
    async with opened(database, mail, SEND) as h:
        told = await led(h)
        claims = await journal(h, told.run_id)
        usage = await lines(h, told.run_id)
    assert told.codes == [code]
    assert len(mail.store.attempts) == 1
    assert (mail.store.messages, usage) == ([], [])
    # what a person mends by connecting the account leaves no claim, so the same email may go out afterwards
    assert [claim["state"] for claim in claims] == ([] if code == "connection_expired" else ["completed"])


@pytest.mark.guarantee("T2", "J6")
async def test_a_rejected_key_must_be_connected_again_and_the_email_goes_out_afterwards(
    database: str, mail: MailServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AGENTIC_VAULT_KEYS", VAULT_KEY)
    async with opened(database, mail, SEND, connections="vault") as h:
        service = _connections(h)
        made = await service.add(h.organization_id, "nylas", ApiKey(value="an-older-key-of-nobody"), label="Ada's mail")
        told = await led(h)
        [row] = await rows(h, "select state::text as state, reauth_reason from agent.connections")
        assert told.codes == ["connection_expired"]
        assert row == {"state": "needs_reauth", "reauth_reason": "rejected_by_vendor"}
        assert await journal(h, told.run_id) == []
        assert mail.store.messages == []
        await service.reconnect(h.organization_id, made.id, ApiKey(value=KEY))
        assert (await led(h)).codes == ["ok"]
    assert len(mail.store.messages) == 1


@pytest.mark.parametrize(("status", "code"), [(200, "ok"), (404, "not_found")])
async def test_an_answer_names_the_email_it_answers_and_says_when_that_one_is_gone(
    database: str, mail: MailServer, status: int, code: str
) -> None:
    if status != 200:
        mail.store.fail_next(status=status)
    answer = {**LETTER, "reply_to_message_id": "<CAF=1.2+x@mail.fjord.example>"}
    async with opened(database, mail, ("email.send", answer)) as h:
        told = await led(h)
    [attempt] = mail.store.attempts
    assert told.codes == [code]
    assert told.shown == ["one message from nylas to 1 new recipient, as an answer: per@fjord.example; subject: Hello"]
    assert json.loads(attempt.body)["reply_to_message_id"] == "<CAF=1.2+x@mail.fjord.example>"


@pytest.mark.guarantee("T2")
async def test_the_mailbox_is_the_one_that_the_call_chooses_by_the_fact_of_its_connection(
    database: str, mail: MailServer
) -> None:
    mailboxes = Mailboxes({"grant_id": GRANT}, {"grant_id": "22222222-2222-4222-8222-222222222222"})
    chosen = {**LETTER, "connection_id": str(mailboxes.accounts[0].id)}
    async with opened(database, mail, SEND, ("email.send", chosen), connections=mailboxes) as h:
        told = await led(h)
    assert told.codes == ["connection_ambiguous", "ok"]
    assert [attempt.path for attempt in mail.store.attempts] == [f"/v3/grants/{GRANT}/messages/send"]


@pytest.mark.guarantee("A1")
async def test_an_approved_email_never_leaves_from_a_mailbox_that_took_the_place_of_the_one_shown(
    database: str, mail: MailServer
) -> None:
    mailboxes, other = Mailboxes({"grant_id": GRANT, "email": "ada@fjord.example"}), Mailboxes({"grant_id": GRANT})
    async with opened(database, mail, SEND, connections=mailboxes) as h:
        run_id = await h.start()
        [card] = (await h.settle(run_id)).pending
        assert card.shown == (
            "one message from mailbox 0 (ada@fjord.example) to 1 new recipient: per@fjord.example; subject: Hello"
        )
        mailboxes.accounts = other.accounts
        assert (await led(h, run_id)).codes == ["connection_revoked"]
    assert mail.store.attempts == []


@pytest.mark.parametrize("grant", ["..", "a/b", "a?b=c", ""])
async def test_a_fact_that_is_no_mailbox_goes_into_no_path(database: str, mail: MailServer, grant: str) -> None:
    async with opened(database, mail, SEND, connections=Mailboxes({"grant_id": grant})) as h:
        told = await led(h)
    assert told.codes == ["connection_expired"]
    assert mail.store.attempts == []


@pytest.mark.guarantee("D2")
async def test_a_rule_may_ask_what_the_deployment_knows_of_the_recipients(database: str, mail: MailServer) -> None:
    async def recipient_is_new(ctx: CallContext, args: BaseModel) -> bool:
        assert isinstance(args, Email)
        return "per@fjord.example" not in args.recipients

    fact = Fact(name="recipient_is_new", type="bool", resolve=recipient_is_new)
    other = {**LETTER, "to": ["ida@nordlys.example"]}
    rule = {"name": "only-known", "effect": "deny", "tool": "email.send", "condition": "facts.recipient_is_new"}
    async with opened(database, mail, ("email.send", other), SEND, facts=[fact.name], resolvers=[fact]) as h:
        await h.platform.policy.save(RuleDraft.model_validate(rule), organization_id=h.organization_id)
        told = await led(h)
    assert told.codes == ["denied", "ok"]
    assert [message.to for message in mail.store.messages] == [("per@fjord.example",)]


@pytest.mark.guarantee("A1")
@pytest.mark.parametrize(
    "broken",
    [
        {"to": ["per@fjord.example\r\nBcc: all@fjord.example"]},
        {"to": ["Per <per@fjord.example>"]},
        {"to": ["per@fjord.example, ida@nordlys.example"]},
        {"to": ["per@fjord.example\n"]},
        {"to": []},
        {"to": [f"per{number}@fjord.example" for number in range(11)]},
        {"cc": ["per@localhost"]},
        {"bcc": [""]},
        {"subject": "Hello\r\nBcc: all@fjord.example"},
        {"subject": "Hello\u2028there"},
        {"subject": "invoice\u202efdp.exe"},
        {"subject": ""},
        {"body": "\x00"},
        {"reply_to_message_id": "a b"},
        {"reply_to_message_id": ".."},
    ],
)
async def test_arguments_that_could_begin_a_header_or_deceive_who_approves_are_refused(
    database: str, mail: MailServer, broken: dict[str, Any]
) -> None:
    async with opened(database, mail, ("email.send", {**LETTER, **broken})) as h:
        told = await led(h)
    assert told.codes == ["invalid_input"]
    assert told.shown == []
    assert mail.store.attempts == []


@pytest.mark.guarantee("B2")
async def test_the_key_is_in_no_row_message_event_or_log(
    database: str, mail: MailServer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    mail.store.lose_next()
    async with opened(database, mail, SEND) as h:
        told = await led(h)
        everything = [caplog.text, repr(h.bus.events), *told.texts, *await _all_rows(h)]
    assert told.codes == ["ok"]
    for text in everything:
        assert KEY not in text
        assert KEY.encode().hex() not in text


def _connections(h: Harness) -> ConnectionService:
    return ConnectionService(store=PostgresConnectionStore(h.platform.database), keys=VaultKeys.parse(VAULT_KEY))


async def _all_rows(h: Harness) -> list[str]:
    tables = await rows(
        h,
        "select c.relname as name from pg_class c join pg_namespace n on n.oid = c.relnamespace "
        "where n.nspname = 'agent' and c.relkind in ('r', 'p') and not c.relispartition",
    )
    found: list[str] = []
    for table in tables:
        for row in await rows(h, f"select t::text as whole, t.* from agent.{table['name']} t"):
            found += [row["whole"], *(bytes(v).decode("latin-1") for v in row.values() if isinstance(v, bytes))]
    return found


async def test_two_organizations_never_share_a_key(database: str, mail: MailServer) -> None:
    organizations: set[UUID] = set()
    for _ in range(2):
        async with opened(database, mail, SEND) as h:
            assert (await led(h)).codes == ["ok"]
            organizations.add(h.organization_id)
    assert len(organizations) == len(keys(mail)) == len(mail.store.messages) == 2
