"""The database itself keeps a server's life and its history, whoever writes."""

from collections.abc import AsyncIterator

import psycopg
import pytest

from mcp_rows import NOTES, ServerRows, server_rows


@pytest.fixture
async def rows(database: str) -> AsyncIterator[ServerRows]:
    async with server_rows(database) as made:
        yield made


async def refused(rows: ServerRows, statement: str, constraint: str) -> None:
    with pytest.raises((psycopg.errors.CheckViolation, psycopg.errors.RestrictViolation)) as error:
        await rows.db.count(statement, {})
    assert error.value.diag.constraint_name == constraint or constraint in str(error.value)


NEVER = "verified_at = null, activated_at = null, offered_hash = null, degraded_at = null, probe_at = null"
FORWARD = {
    "verified": "state = 'verified', activated_at = null, probe_at = null, degraded_at = null",
    "active": "state = 'active', activated_at = now(), probe_at = now(), degraded_at = null",
    "degraded": "state = 'degraded', activated_at = now(), probe_at = now(), degraded_at = now(), failures = 1, reason = 'connect'",
    "registered": f"state = 'registered', {NEVER}",
}


@pytest.mark.parametrize(
    ("reached", "to"),
    [
        ("verified", "degraded"),
        ("verified", "registered"),
        ("active", "verified"),
        ("active", "registered"),
        ("degraded", "verified"),
        ("degraded", "registered"),
    ],
)
async def test_a_server_goes_no_other_way_than_along_its_life(rows: ServerRows, reached: str, to: str) -> None:
    if reached == "verified":
        await rows.store.register(rows.organization_id, NOTES, connection_id=None, user_id=rows.admin)
        await rows.observed("a")
    else:
        await rows.active("a")
    if reached == "degraded":
        await rows.failed(3)
    await refused(rows, f"update agent.mcp_servers set {FORWARD[to]}", "mcp_servers_transition")


async def test_a_registered_server_is_not_activated_unseen(rows: ServerRows) -> None:
    await rows.store.register(rows.organization_id, NOTES, connection_id=None, user_id=rows.admin)
    for to, constraint in (("verified", "verified_has_seen"), ("active", "transition"), ("degraded", "transition")):
        await refused(rows, f"update agent.mcp_servers set {FORWARD[to]}", f"mcp_servers_{constraint}")


async def test_a_retired_server_and_the_identity_of_each_stay(rows: ServerRows) -> None:
    await rows.active("a")
    await refused(rows, "update agent.mcp_servers set server_id = 'other'", "mcp_servers_identity")
    await rows.store.retire(rows.organization_id, "notes", user_id=rows.admin)
    await refused(rows, "update agent.mcp_servers set failures = 1, reason = 'connect'", "mcp_servers_retired_stays")


@pytest.mark.parametrize(
    "change",
    [
        "url = 'https://other.example/'",
        "owner = 'operator'",
        "token_scopes = '{all}'",
        "transport = 'stdio', url = null, owner = 'operator'",
    ],
)
async def test_a_server_that_is_dialled_differently_is_not_active_any_more(rows: ServerRows, change: str) -> None:
    await rows.active("a")
    await refused(rows, f"update agent.mcp_servers set {change}, revision = revision + 1", "mcp_servers_endpoint_moves")


@pytest.mark.guarantee("T4")
@pytest.mark.parametrize(
    ("change", "constraint"),
    [
        ("transport = 'stdio', url = null", "stdio_is_the_operators"),
        ("url = null", "http_has_url"),
        ("auth_scheme = 'bearer'", "scheme_has_credential"),
        (
            "owner = 'operator', transport = 'stdio', url = null, auth_scheme = 'bearer', connection_id = id",
            "scheme_fits_transport",
        ),
        ("auth_scheme = 'env', auth_name = 'TOKEN', connection_id = id", "scheme_fits_transport"),
        ("auth_scheme = 'header', connection_id = id", "scheme_has_name"),
        ("auth_scheme = 'oauth2_client', connection_id = id", "oauth_has_endpoint"),
        ("settings = '[]'", "settings_are_an_object"),
    ],
)
async def test_no_row_says_of_a_server_what_cannot_be(rows: ServerRows, change: str, constraint: str) -> None:
    await rows.store.register(rows.organization_id, NOTES, connection_id=None, user_id=rows.admin)
    statement = f"update agent.mcp_servers set {change}, revision = 2, endpoint_revision = 2"
    await refused(rows, statement, f"mcp_servers_{constraint}")


@pytest.mark.parametrize(
    "statement",
    [
        "update agent.mcp_tool_catalog set declaration = '{}'",
        "update agent.mcp_tool_catalog set withdrawn_at = null where withdrawn_at is not null",
        "update agent.mcp_tool_catalog set withdrawn_at = now() where withdrawn_at is not null",
        "update agent.mcp_catalogs set rejected = '[]'",
        "update agent.mcp_approvals set approved_by = null",
        "delete from agent.mcp_approvals",
    ],
)
async def test_what_was_seen_and_what_was_approved_is_history(rows: ServerRows, statement: str) -> None:
    await rows.active("a", "b")
    await rows.observed("a")
    with pytest.raises(psycopg.errors.RestrictViolation, match=r"history|append-only"):
        await rows.db.count(statement, {})


async def test_a_catalog_that_something_was_approved_of_is_not_removed(rows: ServerRows) -> None:
    await rows.active("a")
    await rows.observed("b")
    with pytest.raises(psycopg.errors.ForeignKeyViolation):
        await rows.db.count("delete from agent.mcp_catalogs", {})
