"""Chains begun before heads were kept: they get one, stay verifiable, and go on under the newer hash."""

import asyncio
import shutil
from pathlib import Path
from uuid import UUID, uuid4

import psycopg

from agentic.bootstrap import App, open_platform
from agentic.local.postgres import bootstrap_supabase
from agentic.services.audit.models import RunAudit
from agentic.storage.migration_files import default_folder
from agentic.storage.migrations import migrate
from agentic.testing import RecordingBus

HEADS = "20261130001100"
RUN = (
    "insert into agent.runs (id, organization_id, request_key, request_digest, root_run_id, definition_name, definition)"
    " values (%(run)s, %(organization)s, 'k', 'd', %(run)s, 'tested', '{}')"
)
DECISION = (
    "insert into agent.policy_decisions (organization_id, run_id, tool, effect, rule_id, rule_version, reason, context_trust)"
    " values (%(organization)s, %(run)s, 'notes.save', 'allow', 'matrix.write', 1, 'it is so', 'user')"
)
EFFECT = (
    "insert into agent.effects (organization_id, run_id, kind, tool, scope, key, epoch, attempt)"
    " values (%(organization)s, %(run)s, 'held', 'notes.save', 's', 'k', 1, 1)"
)


async def written(url: str, *statements: str, **params: UUID) -> None:
    async with await psycopg.AsyncConnection.connect(url) as connection:
        for statement in statements:
            await connection.execute(statement, params)


async def audited(url: str, organization: UUID, run: UUID) -> RunAudit:
    async with open_platform(App(), url, bus=RecordingBus()) as platform:
        return await platform.audit.verify(organization, run)


async def test_chains_of_before_have_heads_and_go_on(empty_database: str, tmp_path: Path) -> None:
    await asyncio.to_thread(bootstrap_supabase, empty_database)
    for file in default_folder().glob("*.sql"):
        if file.name < HEADS:
            shutil.copy(file, tmp_path)
    await migrate(empty_database, folder=tmp_path)
    organization, run = uuid4(), uuid4()
    ids = {"organization": organization, "run": run}
    await written(empty_database, RUN, DECISION, DECISION, EFFECT, EFFECT, **ids)
    await migrate(empty_database)

    assert (await audited(empty_database, organization, run)).findings == ()
    await written(empty_database, DECISION, EFFECT, **ids)
    found = await audited(empty_database, organization, run)
    assert (found.findings, [head.lines for head in found.heads]) == ((), [3, 3])

    tamper = "set local session_replication_role = replica"
    await written(
        empty_database, tamper, "update agent.effects set note = 'x' where run_id = %(run)s and seq = 1", **ids
    )
    await written(
        empty_database, tamper, "delete from agent.policy_decisions where run_id = %(run)s and seq = 3", **ids
    )
    found = await audited(empty_database, organization, run)
    assert [(finding.kind, finding.table, finding.first) for finding in found.findings] == [
        ("missing", "policy_decisions", 3),
        ("altered", "effects", 1),
    ]
