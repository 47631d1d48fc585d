"""``agentic audit verify``: what it prints, and what it exits with."""

from typing import TYPE_CHECKING

import psycopg
import pytest

if TYPE_CHECKING:
    from tests.integration.cli.conftest import Seed, Shell

pytestmark = pytest.mark.timeout(300)  # each command is a process of its own


def test_a_whole_record_exits_with_nothing_to_say_and_a_changed_one_says_where(
    seed: "Seed", shell: "Shell", database: str
) -> None:
    whole = shell("audit", "verify", seed.unknown)
    assert (whole.code, whole.out) == (0, "")
    assert "1 run, 3 lines: all whole" in whole.err
    every = shell("audit", "verify", "--all", "--json")
    assert (every.code, every.err, every.value["runs"], every.value["faulty"]) == (0, "", 2, 0)
    assert all(head["hash"] or not head["lines"] for audit in every.value["audits"] for head in audit["heads"])

    with psycopg.connect(database) as connection:
        connection.execute("set local session_replication_role = replica")
        connection.execute(
            "update agent.policy_decisions set tool = %s where run_id = %s and seq = 1", ("a\x1b[2Jb", seed.unknown)
        )
        connection.execute("delete from agent.effects where run_id = %s", (seed.unknown,))

    shown = shell("audit", "verify", "--all", "--since", "2020-01-01")
    assert shown.code == 1
    for fact in (f"run {seed.unknown}", "altered  policy_decisions  line 1", "missing  effects  line 1", "no_effect"):
        assert fact in shown.out
    assert "\x1b" not in shown.out
    assert seed.run not in shown.out
    assert "1 run is not whole" in shown.err
    told = shell("audit", "verify", seed.unknown, "--json")
    assert (told.code, told.value["whole"], told.value["run_id"]) == (1, False, seed.unknown)
    assert shell("audit", "verify", seed.run).code == 0
    assert shell("audit", "verify", "--all", "--since", "2990-01-01", "--json").value["runs"] == 0


@pytest.mark.parametrize(
    ("arguments", "remedy"),
    [
        ([], "name one RUN, or say --all"),
        (["--since", "2031-05-06"], "name one RUN, or say --all"),
        (["--all", "--since", "yesterday"], "write a day as 2031-05-06"),
        (["11111111-2222-4333-8444-555555555555", "--all"], "name one RUN, or say --all"),
        (["11111111-2222-4333-8444-555555555555", "--since", "2031-05-06"], "--since goes with --all"),
    ],
)
def test_what_cannot_be_meant_is_refused_with_the_remedy(shell: "Shell", arguments: list[str], remedy: str) -> None:
    ended = shell("audit", "verify", *arguments)
    assert ended.code == 2
    assert remedy in ended.err


def test_a_run_that_is_not_there_is_named(seed: "Seed", shell: "Shell") -> None:
    ended = shell("audit", "verify", "11111111-2222-4333-8444-555555555555")
    assert (ended.code, ended.out) == (1, "")
    assert "there is no run 11111111-2222-4333-8444-555555555555" in ended.err
