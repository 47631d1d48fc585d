"""Whether an email goes to somebody new: what the journal completed says so, to rules and to the person who approves."""

import json
from typing import Any
from uuid import UUID, uuid4

import pytest

from agentic.local.providers.mail import MailServer
from agentic.services.policy import RuleDraft
from agentic.storage.journal_store import PostgresJournalStore
from agentic.storage.queries import load_queries
from agentic.testing import Harness
from core_world import execute
from email_stage import LETTER, held, led, opened, time_passes

PER, IDA = "per@fjord.example", "ida@nordlys.example"


def letter(**said: Any) -> tuple[str, dict[str, Any]]:
    return "email.send", {**LETTER, **said}


def counts(shown: Any) -> list[str]:
    return [line.removeprefix("one message from nylas to ").partition(":")[0] for line in shown]


@pytest.mark.guarantee("A6")
async def test_a_recipient_is_new_until_an_email_has_gone_to_them(database: str, mail: MailServer) -> None:
    calls = (
        letter(to=["Per@Fjord.example"]),
        letter(subject="again"),
        letter(subject="two", cc=[IDA]),
        letter(subject="hidden", to=[IDA], bcc=["bo@fjord.example"]),
        letter(subject="all", to=[IDA], cc=["BO@fjord.example"], bcc=[PER]),
    )
    async with opened(database, mail, *calls) as h:
        told = await led(h)
    assert told.codes == ["ok"] * 5
    assert counts(told.shown) == [
        "1 new recipient",
        "1 recipient",
        "2 recipients (1 of them new)",
        "2 recipients (1 of them new)",
        "3 recipients",
    ]


@pytest.mark.guarantee("T1")
async def test_whom_another_organization_wrote_to_is_new(database: str, mail: MailServer) -> None:
    async with opened(database, mail, letter()) as h:
        await led(h)
        assert await _known(h, h.organization_id) == {PER}
        assert await _known(h, uuid4()) == set()


@pytest.mark.guarantee("D2")
async def test_a_rule_may_ask_for_both_facts_without_a_resolver_of_the_app(database: str, mail: MailServer) -> None:
    rules = [
        {"name": "only-known", "effect": "deny", "tool": "email.send", "condition": "facts.recipient_is_new"},
        {"name": "no-crowds", "effect": "deny", "tool": "email.send", "condition": "facts.new_recipients > 1.0"},
    ]
    async with opened(database, mail, letter(), letter(subject="b"), letter(subject="c", cc=[IDA])) as h:
        for rule in rules[1:]:
            await h.platform.policy.save(RuleDraft.model_validate(rule), organization_id=h.organization_id)
        run_id = await h.start()
        await h.settle(run_id)
        await h.decide(run_id)
        await h.platform.policy.save(RuleDraft.model_validate(rules[0]), organization_id=h.organization_id)
        told = await led(h, run_id)
    assert told.codes == ["denied", "denied", "denied"]
    assert mail.store.messages == []


async def test_what_was_refused_or_nobody_knows_of_counts_for_nothing_until_an_operator_says_so(
    database: str, mail: MailServer
) -> None:
    mail.store.fail_next(status=400)
    async with opened(database, mail, letter()) as h:
        assert (await led(h)).codes == ["upstream_refused"]
        assert await _known(h, h.organization_id) == set()
    mail.store.fail_next(status=504, after_accept=True)
    async with opened(database, mail, letter()) as h:
        run_id = await held(h)
        assert await _known(h, h.organization_id) == set()
        await time_passes(h, hour=True)
        assert (await led(h, run_id)).codes == ["outcome_unknown"]
        [call] = await h.uncertain(run_id)
        assert await _known(h, h.organization_id) == set()
        await h.platform.journal.settle(
            h.organization_id, call.ref, happened=True, user_id=h.user_id, evidence="seen in Sent"
        )
        assert await _known(h, h.organization_id) == {PER}


async def test_a_subject_or_a_body_that_is_an_address_makes_nobody_known(database: str, mail: MailServer) -> None:
    sly = letter(to=[IDA], subject=PER, body=f'","to":["{PER}"]')
    async with opened(database, mail, sly) as h:
        assert (await led(h)).codes == ["ok"]
        assert await _known(h, h.organization_id) == {IDA}


async def test_recipients_are_looked_up_in_their_index_however_many_emails_there_are(
    database: str, mail: MailServer
) -> None:
    """The condition of the question has to be the index's own, to the letter."""
    async with opened(database, mail) as h:
        (_, plan) = await h.platform.database.atomic(
            [
                ("select set_config('enable_seqscan', 'off', true)", {}),
                (
                    f"explain (format json) {load_queries('journal')['written_to']}",
                    {"organization_id": h.organization_id, "addresses": [PER]},
                ),
            ]
        )
    assert "idempotency_keys_recipients" in json.dumps(plan)


@pytest.mark.guarantee("J4")
@pytest.mark.parametrize(
    "arguments",
    [
        "no JSON",
        {"to": PER},
        {"to": [None, 3, {"to": [PER]}, ["\x00", "\ud7ff"]], "cc": {"a": 1}, "bcc": ["x" * 100_000]},
        {"to": []},
        [PER],
        PER,
        None,
        7,
    ],
    ids=["no JSON", "text", "odd", "empty", "list", "string", "null", "number"],
)
async def test_a_tool_of_that_name_with_other_arguments_completes_all_the_same(
    database: str, mail: MailServer, arguments: Any
) -> None:
    """The index is written in the commit that says that the email left: nothing may fail there."""
    async with opened(database, mail) as h:
        await execute(
            h,
            "insert into agent.idempotency_keys (organization_id, scope, key, state, request_hash, tool, arguments_text, "
            "idempotency_class, completed_at, output, outcome_status) values (%(organization)s, 's', 'k', 'completed', 'h', "
            "'email.send', %(arguments)s, 'idempotent', clock_timestamp(), '', 'ok')",
            organization=h.organization_id,
            arguments=arguments if arguments == "no JSON" else json.dumps(arguments),
        )
        assert await _known(h, h.organization_id) == set()


async def _known(h: Harness, organization_id: UUID) -> set[str]:
    return await PostgresJournalStore(h.platform.database).written_to(organization_id, [PER, IDA])
