"""``agentic dev --stand-ins``: an app that knows its vendors by its environment alone, and never reaches one."""

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest
from psycopg.rows import dict_row

from tests.integration.cli.conftest import Shell
from tests.integration.cli.test_dev import READY_S, developing, finished

pytestmark = pytest.mark.timeout(300)  # each command is a process of its own

APP = """
import json, re
from pathlib import Path
import inngest
from agentic import AgentDefinition, App
from agentic.runtime.agent.agno.scripted import ScriptedModel
from agentic.runtime.agent.script import Call, Calls, Say
from agentic.services.connections.nylas import NylasEvents
from agentic.services.provider_jobs.fullenrich import FullEnrich, FullEnrichAccount
from agentic.services.tools.handlers.email import email_tools, nylas_origin
from agentic.services.tools.handlers.research import ResearchKeys, ResearchOrigins, research_tools

IDA = {"ref": "a", "first_name": "Ida", "last_name": "Holm", "domain": "nordlys.example"}

def collect(seen):
    job = re.findall(r'"job_id":"([0-9a-f-]{36})"', json.dumps([m.text for m in seen]).replace(chr(92), ""))[-1]
    return Calls([Call("fullenrich.collect", {"job_id": job})])

SCRIPT = [
    Calls([
        Call("research.search_web", {"query": "tide sensors"}),
        Call("research.search_company", {"objective": "Nordlys", "queries": ["nordlys"]}),
        Call("research.find_contact", {"first_name": "Ida", "last_name": "Holm", "domain": "nordlys.example"}),
    ]),
    Calls([Call("fullenrich.submit", {"contacts": [IDA]})]),
    collect,
    Calls([Call("email.send", {"to": ["ida@nordlys.example"], "subject": "Hello", "body": "Hi Ida"})]),
    Say("Done."),
]
def functions(client, workflows):
    mail = inngest.TriggerEvent(event="agentic/account.event.v1", expression="event.data.type == 'message.created'")

    @client.create_function(fn_id="mail-arrived", trigger=mail)
    async def arrived(ctx):
        with Path("arrived").open("a") as file:
            file.write(json.dumps(dict(ctx.event.data)) + chr(10))

    return [arrived]

tools = [*research_tools(ResearchKeys.from_environment(), origins=ResearchOrigins.from_environment()), *email_tools(origin=nylas_origin())]
app = App(
    tools=tools,
    providers=[FullEnrich(FullEnrichAccount.from_environment())],
    account_events=[NylasEvents.from_environment()],
    functions=functions,
    agents=[AgentDefinition(name="scout", instructions="Find and write.", model="script",
        tools=(*(tool.spec.name for tool in tools), "fullenrich.submit", "fullenrich.collect"))],
    models={"script": lambda: ScriptedModel(script=SCRIPT)},
)
"""


def until(look: Callable[[], Any]) -> Any:
    deadline = time.monotonic() + READY_S
    while not (found := look()) and time.monotonic() < deadline:
        time.sleep(0.1)
    return found


def test_an_app_calls_every_vendor_s_stand_in_and_is_told_what_becomes_of_it(
    shell: Shell, tmp_path: Path, database: str
) -> None:
    (tmp_path / "product.py").write_text(APP)
    shell.variables.update(DATABASE_URL=database, EXA_API_KEY="a-key-of-a-real-account")
    with developing(shell, "--stand-ins") as (_, address):
        announced = (tmp_path / ".agentic" / "dev.json").read_text()
        vendors = {
            name.removesuffix("_ORIGIN").lower(): url
            for name, url in json.loads(announced)["stand_ins"].items()
            if name.endswith("_ORIGIN") and name != "AGENTIC_API_ORIGIN"
        }
        assert set(vendors) == {"exa", "parallel", "firecrawl", "hunter", "fullenrich", "nylas"}
        assert "VAULT" not in announced
        arrived = tmp_path / "arrived"
        headers = {"Authorization": f"Bearer {shell('token').out.strip()}"}
        with (
            httpx.Client(base_url=address, trust_env=False, timeout=30, headers=headers) as http,
            httpx.Client(trust_env=False, timeout=30) as knobs,
            psycopg.connect(database, autocommit=True, row_factory=dict_row) as rows,
        ):

            def turn(vendor: str, **order: Any) -> dict[str, Any]:
                answer = knobs.post(f"{vendors[vendor]}/_stand_in", json=order)
                assert answer.status_code == 200, answer.text
                told: dict[str, Any] = answer.json()
                return told

            assert turn("exa", then=[{"status": 429}]) == {"ordered": 1}
            assert turn("fullenrich", after_s=0.5)["after_s"] == 0.5
            assert knobs.post(f"{vendors['exa']}/_stand_in", json={"than": []}).status_code == 400
            assert knobs.post(f"{vendors['exa']}/_stand_in", content=b"{}").status_code == 405
            body = {"agent": "scout", "input": "Find Ida and write.", "request_key": "one"}
            run_id = http.post("/v1/runs", json=body).json()["run_id"]
            shown, accounts = [], []
            for _ in range(2):  # the batch, and the email
                [card] = until(lambda: http.get("/v1/approvals", params={"status": "pending"}).json()["approvals"])
                shown.append(card["shown"])
                accounts.append(card["account"])
                decided = http.post(f"/v1/approvals/{card['id']}/approve", json={})
                assert decided.status_code == 200, decided.text
            run = finished(http, run_id)
            assert (run["state"], run["answer"]) == ("succeeded", "Done."), run
            mailbox_name = "stand-in mailbox (me@nordlys.example)"
            assert accounts == [None, mailbox_name]
            assert (
                shown[1] == f"one message from {mailbox_name} to 1 new recipient: ida@nordlys.example; subject: Hello"
            )
            [job] = until(
                lambda: rows.execute("select * from agent.provider_jobs where usage_id is not null").fetchall()
            )
            assert job["state"] == "completed"
            codes = rows.execute(
                "select distinct attributes ->> 'tool.outcome_status' as code from agent.spans "
                "where kind = 'tool' and attributes ? 'tool.outcome_status'"
            ).fetchall()
            assert [row["code"] for row in codes] == ["succeeded"]
            assert len(knobs.get(f"{vendors['exa']}/_stand_in").json()["requests"]) == 2
            [sent] = knobs.get(f"{vendors['nylas']}/_stand_in").json()["sent"]
            assert sent["to"] == ["ida@nordlys.example"]

            mail = {"from": "ida@nordlys.example", "subject": "Re: Hello", "message_id": "msg-7"}
            assert turn("nylas", receive=[mail])["events_taken"] == [True]
            assert turn("nylas", grant="invalid")["events_taken"] == [True]
            told = rows.execute(
                "select data ->> 'type' as type, data ->> 'object_id' as id from agent.outbox "
                "where name = 'agentic/account.event.v1' order by created_at"
            ).fetchall()
            assert told == [{"type": "message.created", "id": "msg-7"}, {"type": "grant.expired", "id": None}]
            [mailbox] = rows.execute("select id, state from agent.connections").fetchall()
            assert mailbox["state"] == "needs_reauth"
            [line] = until(lambda: arrived.exists() and arrived.read_text().splitlines())
            heard = json.loads(line)  # by the product's own function, which asked for mail alone
            assert (heard["object_id"], heard["connection_id"]) == ("msg-7", str(mailbox["id"]))
    with developing(shell, "--stand-ins"), psycopg.connect(database) as connection:
        states = connection.execute("select state from agent.connections").fetchall()
        assert states == [("connected",)], "the next start connects the one mailbox again"
        asked = shell("connections", "check", str(mailbox["id"]), "--probe", "--json")
        probe = json.loads(asked.out)["probe"]
        assert (asked.code, probe["accepted"]) == (0, True), asked
        assert "//127.0.0.1:" in probe["asked"], "no vendor is shown the key of a stand-in"
        checked = shell("tools", "validate", "--app", "product:app", "--json")
        assert (checked.code, json.loads(checked.out)["faults"]) == (0, []), checked
        joined = shell.start("worker", "--app", "product:app")  # the app cannot be imported without its account
        assert joined.stderr is not None
        assert joined.stdout is not None
        while "at work" not in (line := joined.stderr.readline()):
            assert line, "the worker ended"
        joined.terminate()
        assert joined.wait(timeout=READY_S) == 0
        joined.stdout.close()
        joined.stderr.close()
