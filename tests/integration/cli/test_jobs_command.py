"""``agentic jobs``: what it shows, what an operator may say, and what it refuses."""

from typing import TYPE_CHECKING
from uuid import uuid4

import psycopg
import pytest

if TYPE_CHECKING:
    from tests.integration.cli.conftest import Seed, Shell

pytestmark = pytest.mark.timeout(300)  # each command is a process of its own

APPS = """
from agentic import App
from agentic.services.provider_jobs.fullenrich import FullEnrich, FullEnrichAccount

account = FullEnrichAccount(key="a-key-of-nobody", callback_origin="https://api.shop.example", origin="http://127.0.0.1:1")
app = App(providers=[FullEnrich(account)])
without = App()
"""


def insert(database: str, seed: "Seed", *, unknown: bool) -> str:
    """A reserved job of the seed's run."""
    job = str(uuid4())
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute(
            "insert into agent.provider_jobs (id, organization_id, root_run_id, run_id, provider, note, unknown_at) "
            "select %s, organization_id, root_run_id, id, 'fullenrich', %s, case when %s then clock_timestamp() end "
            "from agent.runs where id = %s",
            (job, "no answer \u202ebefore the deadline", unknown, seed.run),
        )
        connection.execute(
            "insert into agent.webhook_drops (provider, reason, day, drops) values ('fullenrich', 'late', '2026-02-03', 4)"
        )
    return job


@pytest.mark.guarantee("T1")
def test_jobs_are_listed_shown_and_settled_by_an_operator_with_evidence(
    database: str, seed: "Seed", shell: "Shell"
) -> None:
    job = insert(database, seed, unknown=True)
    listed = shell("jobs", "list", "--unknown")
    assert job in listed.out
    assert "nobody knows" in listed.out
    assert "\u202e" not in listed.out
    [view] = shell("jobs", "list", "--json").value
    assert (view["id"], view["state"], view["run_id"]) == (job, "submitted", seed.run)
    assert shell("jobs", "list", "--unsettled", "--json").value == []
    assert shell("jobs", "list", "--organization", str(uuid4()), "--json").value == []
    assert shell("jobs", "show", job, "--organization", str(uuid4())).code != 0
    assert shell("jobs", "show", job, "--json").value == view

    said = ("jobs", "reconcile", job, "--not-taken", "--evidence", "their dashboard has none", "--json")
    refused = shell(*said, "--as", str(seed.approver))
    assert refused.code != 0
    assert "operator" in refused.err
    ended = shell(*said, "--as", str(seed.operator))
    assert ended.code == 0, ended.err
    assert (ended.value["state"], ended.value["cost"]) == ("failed", {"quantity": "0", "unit": "job"})
    assert "none of which nobody knows" in shell(*said, "--as", str(seed.operator)).err


def test_what_makes_no_sense_is_refused_and_dropped_deliveries_are_counted(
    database: str, seed: "Seed", shell: "Shell"
) -> None:
    job = insert(database, seed, unknown=False)
    assert shell("jobs", "reconcile", job).code == 2
    assert shell("jobs", "reconcile", job, "--not-taken").code == 2
    assert shell("jobs", "list", "--open", "--unknown").code == 2
    [drop] = shell("jobs", "drops", "--json").value
    assert (drop["provider"], drop["reason"], drop["day"], drop["drops"]) == ("fullenrich", "late", "2026-02-03", 4)


def test_a_job_that_could_not_be_asked_about_is_an_error_that_says_why(
    database: str, seed: "Seed", shell: "Shell"
) -> None:
    (shell.folder / "product.py").write_text(APPS)
    job = insert(database, seed, unknown=False)

    def why(app: str = "product:app") -> str:
        ended = shell("jobs", "reconcile", job, "--app", app, "--json")
        assert (ended.code, ended.out) == (1, "")
        return ended.err

    assert "never named its id" in why()
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("update agent.provider_jobs set provider_job_id = 'batch-1' where id = %s", (job,))
        assert "product:without has no provider fullenrich" in why("product:without")
        assert "could not be asked about: GET http://127.0.0.1:1" in why()
        connection.execute(
            "update agent.provider_jobs set state = 'completed', terminal_at = clock_timestamp() where id = %s", (job,)
        )
    ended = shell("jobs", "reconcile", job, "--app", "product:app", "--json")
    assert (ended.code, ended.value["state"]) == (0, "completed"), ended.err
    assert "is not asked" in ended.err
