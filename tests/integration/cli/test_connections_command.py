"""``agentic connections``: what it stores, says, refuses and exits with; and that no secret is ever printed."""

from typing import TYPE_CHECKING
from uuid import uuid4

import psycopg
import pytest

if TYPE_CHECKING:
    from tests.integration.cli.conftest import Seed, Shell
    from warm_processes import Ended

pytestmark = pytest.mark.timeout(300)  # each command is a process of its own

KEY_1, KEY_2 = ("AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE=", "AgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgI=")
SECRET = "api-key-value-of-ada"


@pytest.fixture
def vault(seed: "Seed", shell: "Shell") -> "Shell":
    shell.variables["AGENTIC_VAULT_KEYS"] = KEY_1
    return shell


def add(shell: "Shell", *arguments: str, typed: str = f"{SECRET}\n", **variables: str) -> "Ended":
    return shell("connections", "add", "mail", *arguments, "--json", typed=typed, **variables)


@pytest.mark.guarantee("B2", "T1")
def test_an_account_is_connected_listed_checked_connected_again_and_revoked(vault: "Shell") -> None:
    added = add(vault, "--secret-stdin", "--label", "Ada", "--account", "address=ada@fjord.example")
    assert added.code == 0, added.err
    made = added.value
    assert (made["provider"], made["kind"], made["label"], made["state"]) == ("mail", "api_key", "Ada", "connected")
    assert made["account"] == {"address": "ada@fjord.example"}

    listed = vault("connections", "list")
    assert made["id"] in listed.out
    assert "ada@fjord.example" in listed.out
    assert vault("connections", "list", "--json").value == [made]
    assert vault("connections", "list", "--organization", str(uuid4()), "--json").value == []

    checked = vault("connections", "check", made["id"], "--json")
    assert (checked.code, checked.value["usable"]) == (0, True)
    locked = vault("connections", "check", made["id"], "--json", AGENTIC_VAULT_KEYS="")
    assert (locked.code, locked.value["opens"]) == (1, False)
    assert "AGENTIC_VAULT_KEYS" in locked.value["note"]
    assert vault("connections", "check", made["id"], "--organization", str(uuid4())).code == 1

    again = vault("connections", "reconnect", made["id"], "--secret-stdin", typed="api-key-value-2\n")
    assert again.code == 0, again.err
    revoked = vault("connections", "revoke", made["id"], "--json")
    assert (revoked.code, revoked.value["state"], revoked.value["key_id"]) == (0, "revoked", None)
    assert vault("connections", "check", made["id"]).code == 1
    late = vault("connections", "reconnect", made["id"], "--secret-stdin", typed="api-key-value-3\n")
    assert (late.code, "add a new one" in late.err) == (1, True)
    for ended in (added, listed, checked, again, revoked, late):
        assert "api-key-value" not in ended.out + ended.err


def test_a_vendor_is_asked_about_a_connection_only_when_it_is_wanted_and_never_for_money(vault: "Shell") -> None:
    mail = add(vault, "--secret-stdin").value["id"]
    asked = vault("connections", "check", mail, "--probe")
    assert (asked.code, "nobody was asked: mail documents no question that costs nothing" in asked.err) == (0, True)
    made = vault(
        "connections", "add", "hunter", "--secret-stdin", "--header", "x-api-key", "--json", typed=f"{SECRET}\n"
    )
    away = vault("connections", "check", made.value["id"], "--probe", "--json", HUNTER_ORIGIN="http://127.0.0.1:9")
    assert (away.code, away.value["usable"]) == (0, True)
    assert away.value["probe"]["asked"] == "GET http://127.0.0.1:9/v2/account"
    assert away.value["probe"]["accepted"] is None
    assert SECRET not in asked.out + asked.err + away.out + away.err


def test_an_oauth_client_and_a_persons_consent_are_told_apart(vault: "Shell") -> None:
    endpoint = ["--oauth-client", "ada", "--token-endpoint", "https://login.vendor.example/token"]
    client = add(vault, *endpoint, "--scope", "mail.send", "--label", "one", typed="client-secret\n")
    consent = add(vault, *endpoint, "--refresh-token", "--label", "two", typed="client-secret\nrefresh-value\n")
    public = add(vault, *endpoint, "--refresh-token", "--label", "three", typed="\nrefresh-value\n")
    assert [ended.code for ended in (client, consent, public)] == [0, 0, 0]
    kinds = [ended.value["kind"] for ended in (client, consent, public)]
    assert kinds == ["oauth_client", "oauth_refresh", "oauth_refresh"]
    assert client.value["scopes"] == ["mail.send"]


def test_the_keys_of_a_vault_are_changed_without_touching_what_they_open(vault: "Shell") -> None:
    made = add(vault, "--secret-stdin").value
    rotated = vault("connections", "rotate", "--json", AGENTIC_VAULT_KEYS=f"{KEY_2},{KEY_1}")
    assert (rotated.code, rotated.value["rewrapped"], rotated.value["unreadable"]) == (0, 1, [])
    assert vault("connections", "check", made["id"], AGENTIC_VAULT_KEYS=KEY_2).code == 0
    assert vault("connections", "check", made["id"], AGENTIC_VAULT_KEYS=KEY_1).code == 1
    left = vault("connections", "rotate", "--json", AGENTIC_VAULT_KEYS=KEY_1)
    assert (left.code, left.value["unreadable"]) == (1, [made["id"]])


@pytest.mark.parametrize(
    ("arguments", "typed", "why"),
    [
        ([], "", "--secret-stdin"),
        (["--secret-stdin", "--oauth-client", "ada"], "", "--secret-stdin"),
        (["--secret-stdin"], "abc\n", "at least 6"),
        (["--secret-stdin"], "\n", "it brought nothing"),
        (["--secret-stdin"], "", "it brought nothing"),
        (["--secret-stdin"], f"{SECRET}\n{SECRET}\n", "nothing else"),
        (["--secret-stdin"], f"{SECRET}\n" + " " * 70_000 + "x", "nothing else"),
        (["--secret-stdin", SECRET], f"{SECRET}\n", "argument too many"),
        (["--secret-stdin", "--label", f"key {SECRET}"], f"{SECRET}\n", "holds the secret"),
        (["--secret-stdin", "--account", f"grant_id={SECRET}"], f"{SECRET}\n", "holds the secret"),
        (["--secret-stdin", "--account", "grant_id="], f"{SECRET}\n", "name and a value"),
        (["--secret-stdin", "--account", "grant_id=a\x1b[2J"], f"{SECRET}\n", "printable"),
        (["--secret-stdin", "--label", " "], f"{SECRET}\n", "label"),
        (
            ["--oauth-client", "ada", "--token-endpoint", "https://login.vendor.example/t"],
            "client-secret\nrefresh-value\n",
            "--refresh-token",
        ),
        (["--oauth-client", "ada"], "client-secret\n", "--token-endpoint"),
        (["--oauth-client", "ada", "--token-endpoint", "http://login.vendor.example/t"], "client-secret\n", "clear"),
        (["--secret-stdin", "--account", "nonsense"], f"{SECRET}\n", "NAME=VALUE"),
        (["--secret-stdin", "--header", "two words"], f"{SECRET}\n", "header"),
        (["--secret-stdin", "--header", "Content-Length"], f"{SECRET}\n", "carries no key"),
        (["--secret-stdin", "--header", "content-type"], f"{SECRET}\n", "carries no key"),
        (["--secret-stdin", "--label", "x" * 300], f"{SECRET}\n", "label"),
    ],
)
def test_what_cannot_be_a_connection_is_refused_and_nothing_is_written(
    vault: "Shell", arguments: list[str], typed: str, why: str
) -> None:
    refused = add(vault, *arguments, typed=typed)
    assert (refused.code, refused.out) == (2, "")
    assert why in refused.err
    assert SECRET not in refused.err
    assert _count(vault) == 0


@pytest.mark.parametrize("keys", ["", "not-a-key"])
def test_without_a_good_key_nothing_is_written_and_the_remedy_is_named(vault: "Shell", keys: str) -> None:
    refused = add(vault, "--secret-stdin", AGENTIC_VAULT_KEYS=keys)
    assert (refused.code, refused.out) == (1, "")
    assert "openssl rand -base64 32" in refused.err
    assert _count(vault) == 0


def test_what_no_mailbox_is_called_is_refused_before_anybody_approves_an_email_from_it(vault: "Shell") -> None:
    for grant, code in (("a/b", 2), ("..", 2), ("11111111-1111-4111-8111-111111111111", 0), ("ada@fjord.example", 0)):
        named = ("--account", f"grant_id={grant}", "--label", f"mailbox {grant}")
        added = vault("connections", "add", "nylas", "--secret-stdin", *named, typed=f"{SECRET}\n")
        assert (added.code, "no id of a mailbox" in added.err) == (code, code == 2), added.err


def test_a_label_is_taken_once(vault: "Shell") -> None:
    assert add(vault, "--secret-stdin").code == 0
    twice = add(vault, "--secret-stdin")
    assert (twice.code, "label" in twice.err) == (1, True)


def test_a_second_account_of_a_provider_is_said_to_make_calls_name_theirs(vault: "Shell") -> None:
    assert "connection_id" not in add(vault, "--secret-stdin", "--label", "one").err
    second = add(vault, "--secret-stdin", "--label", "two")
    assert (second.code, "mail has 2 connections now" in second.err, "connection_id" in second.err) == (0, True, True)
    assert vault("connections", "revoke", second.value["id"]).code == 0
    third = add(vault, "--secret-stdin", "--label", "two")
    assert "mail has 2 connections now" in third.err, "a revoked one is no choice"


@pytest.mark.parametrize("keys", ["", "not-a-key", KEY_2])
def test_an_account_is_revoked_without_any_key_and_as_often_as_it_is_asked(vault: "Shell", keys: str) -> None:
    made = add(vault, "--secret-stdin").value
    first, again = (vault("connections", "revoke", made["id"], "--json", AGENTIC_VAULT_KEYS=keys) for _ in range(2))
    assert (first.code, again.code) == (0, 0), first.err + again.err
    assert first.value == again.value
    assert first.value["state"] == "revoked"


def _count(shell: "Shell") -> int:
    with psycopg.connect(shell.variables["DATABASE_URL"]) as connection:
        row = connection.execute("select count(*) from agent.connections").fetchone()
    assert row is not None
    return int(row[0])
