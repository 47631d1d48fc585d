"""An app's registration, written down: where it is called, what it declares, when its crons fire next."""

from __future__ import annotations

import logging

from agentic.local.engine.cron import parse_cron
from agentic.local.engine.declarations import AppDeclaration
from agentic.local.engine.runs import follow_limits
from agentic.local.engine.store import Transaction, as_json

_log = logging.getLogger(__name__)


async def register(transaction: Transaction, app: AppDeclaration) -> bool:
    """Store a registration; calls that could not reach the app's old address are due at once.

    Returns:
        Whether the declarations changed.
    """
    before = await transaction.one("app_checksum", name=app.name)
    await transaction.run("upsert_app", name=app.name, url=app.url, checksum=app.checksum)
    for function_id, config in app.configs.items():
        await transaction.run("upsert_function", id=function_id, app=app.name, config=as_json(config))
    await transaction.run("retire_functions", app=app.name, kept=list(app.configs))
    crons = [(function.id, expression) for function in app.functions for expression in function.crons]
    await transaction.run("drop_crons", app=app.name, kept=[f"{owner} {expression}" for owner, expression in crons])
    for owner, expression in crons:
        next_at = parse_cron(expression).next_after(transaction.now)
        await transaction.run("plan_cron", function_id=owner, expression=expression, next_at=next_at)
    await transaction.run("retry_app_now", app=app.name)
    modified = before is None or before["checksum"] != app.checksum
    if modified:
        for function in app.functions:
            await follow_limits(transaction, function)
    _log.info("app %s registered %d functions at %s", app.name, len(app.functions), app.url)
    return modified
