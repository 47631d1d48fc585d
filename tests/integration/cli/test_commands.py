"""What commands print, refuse and exit with."""

import subprocess
import sys
from typing import TYPE_CHECKING
from uuid import uuid4

import pytest

if TYPE_CHECKING:
    from tests.integration.cli.conftest import Seed, Shell

pytestmark = pytest.mark.timeout(300)  # each command is a process of its own

LISTINGS = [
    ["tools", "list"],
    ["tools", "show", "letters.post"],
    ["runs", "list"],
    ["approvals", "list"],
    ["approvals", "list", "--status", "pending"],
    ["uncertain", "list"],
    ["db", "status"],
]


def test_every_listing_is_one_json_value_and_nothing_else(seed: "Seed", shell: "Shell") -> None:
    listings = [*LISTINGS, ["runs", "show", seed.run], ["approvals", "show", seed.approval]]
    for arguments in listings:
        ended = shell(*arguments, "--json")
        assert (ended.code, ended.err) == (0, ""), arguments
        assert ended.value, arguments


def test_the_tree_of_a_run_is_read_by_people_and_by_programs(seed: "Seed", shell: "Shell") -> None:
    tree = shell("runs", "show", seed.unknown, "--json").value
    assert tree["run"]["id"] == seed.unknown
    assert [effect["kind"] for effect in tree["effects"]] == ["uncertain"]
    shown = shell("runs", "show", seed.unknown)
    assert shown.code == 0
    for text in ("letters.post", "outcome_unknown", "allow by matrix.send", tree["uncertain"][0]["ref"], "Åse"):
        assert text in shown.out
    assert "\u202e" not in shown.out


@pytest.mark.guarantee("A3", "A5", "T1")
def test_an_approval_is_given_once_by_somebody_who_may(seed: "Seed", shell: "Shell") -> None:
    approver = ["--as", str(seed.approver)]
    stranger = shell("approvals", "approve", seed.approval)  # the folder's identity is no member
    assert (stranger.code, stranger.out) == (1, "")
    assert "role approver" in stranger.err
    foreign = shell("approvals", "approve", seed.approval, *approver, "--organization", str(uuid4()))
    missing = shell("approvals", "approve", str(uuid4()), *approver)
    assert foreign.code == missing.code == 1
    assert "there is no approval" in foreign.err
    assert "there is no approval" in missing.err

    given = shell("approvals", "approve", seed.approval, *approver, "--comment", "fine", "--json")
    assert (given.code, given.value["status"], given.value["comment"]) == (0, "approved", "fine")
    assert shell("approvals", "approve", seed.approval, *approver).code == 0
    opposite = shell("approvals", "reject", seed.approval, *approver)
    assert opposite.code == 1
    assert str(seed.approver) in opposite.err


def test_an_unknown_outcome_is_settled_once(seed: "Seed", shell: "Shell") -> None:
    ref = shell("uncertain", "list", "--json").value[0]["ref"]
    operator = ["--as", str(seed.operator), "--evidence", "asked the post office"]
    assert shell("uncertain", "confirm", ref).code == 2, "evidence is not optional"
    refused = shell("uncertain", "confirm", ref, "--as", str(seed.approver), "--evidence", "I believe so")
    assert (refused.code, "role operator" in refused.err) == (1, True)
    assert shell("uncertain", "deny", ref, *operator).code == 0
    assert shell("uncertain", "deny", ref, *operator).code == 1
    assert shell("uncertain", "list", "--json").value == []
    effects = shell("runs", "show", seed.unknown, "--json").value["effects"]
    assert (effects[-1]["kind"], effects[-1]["note"]) == ("denied", "asked the post office")


def test_a_run_is_asked_to_stop_once(seed: "Seed", shell: "Shell") -> None:
    assert "asked to stop" in shell("runs", "cancel", seed.run).err
    assert "not asked again" in shell("runs", "cancel", seed.run).err
    assert shell("runs", "cancel", str(uuid4())).code == 1


def test_a_reader_that_leaves_early_is_no_error(seed: "Seed", shell: "Shell") -> None:
    for arguments in (["runs", "show", seed.unknown], ["runs", "show", seed.unknown, "--json"]):
        process = shell.start(*arguments)
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.wait(timeout=50) == 0
        assert process.stderr.read() == ""
        process.stderr.close()


def test_a_terminal_without_our_letters_gets_escapes_not_an_error(seed: "Seed", shell: "Shell") -> None:
    for extra in ([], ["--json"]):
        ended = shell.cold("runs", "show", seed.unknown, *extra, PYTHONIOENCODING="ascii:strict")
        assert ended.code == 0, ended.err
        assert ended.out.isascii()


@pytest.mark.parametrize(
    "arguments",
    [
        ["frob"],
        ["runs", "show", "seventeen"],
        ["approvals", "list", "--status", "lost"],
        ["approvals", "approve"],
        ["runs"],
    ],
)
def test_a_misused_command_exits_with_2_and_says_what_there_is(shell: "Shell", arguments: list[str]) -> None:
    ended = shell(*arguments)
    assert (ended.code, ended.out) == (2, "")
    assert "help" in ended.err
    assert "Traceback" not in ended.err


def test_the_version_is_the_installed_one(shell: "Shell") -> None:
    from importlib.metadata import version

    assert shell.cold("--version").out == f"agentic {version('agentic-platform')}\n"


def test_help_loads_no_framework_no_driver_and_no_terminal_library() -> None:
    program = (
        "import sys\nfrom agentic.cli import main\n"
        "try:\n    main(sys.argv[1:])\nexcept SystemExit as end:\n    assert end.code == 0\n"
        "print('|'.join(sys.modules))"
    )
    for arguments in (["--help"], ["approvals", "approve", "--help"]):
        done = subprocess.run(
            [sys.executable, "-c", program, *arguments],
            capture_output=True,
            text=True,
            timeout=50,
            check=True,
        )
        modules = done.stdout.splitlines()[-1].split("|")
        roots = {module.partition(".")[0] for module in modules}
        heavy = {
            "agno",
            "supabase",
            "fastapi",
            "starlette",
            "inngest",
            "psycopg",
            "httpx",
            "rich",
            "uvicorn",
            "jwt",
            "cryptography",
        }
        assert roots & heavy == set()
        ours = [module for module in modules if module.startswith("agentic.")]
        assert (
            sum(not module.startswith("agentic.cli.") for module in ours) < 10
        )  # each group of commands is a file of cli
