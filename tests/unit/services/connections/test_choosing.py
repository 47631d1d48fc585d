"""Which account a call acts in, or which stable code it gets."""

from datetime import UTC, datetime
from uuid import UUID, uuid4

import pytest

from agentic.services.connections.choosing import chosen
from agentic.services.connections.models import Binding, ConnectionState, Kind, StoredConnection
from agentic.services.tools.connections import Unconnected, account_name

NOW = datetime(2026, 11, 30, tzinfo=UTC)
ORGANIZATION = uuid4()


def stored(state: str, **account: str) -> StoredConnection:
    binding = Binding(organization_id=ORGANIZATION, id=uuid4(), provider="mail", kind=Kind.API_KEY)
    return StoredConnection(
        binding=binding,
        label=f"{state} box",
        account=account,
        state=ConnectionState(state),
        scopes=(),
        sealed=None,
        version=1,
        fresh_for_s=None,
        expires_at=None,
        refresh_fence=0,
        reauth_reason=None,
        created_by=None,
        created_at=NOW,
        revoked_at=None,
    )


def code(states: list[str], named: int | None = None) -> str:
    """The code of a call, or which connection it uses, by place."""
    rows = [stored(state) for state in states]
    found = chosen(rows, connection_id=None if named is None else rows[named].id)
    return str(found.code) if isinstance(found, Unconnected) else f"uses {rows.index(found)}"


@pytest.mark.parametrize(
    ("states", "expected"),
    [
        ([], "connection_required"),
        (["connected"], "uses 0"),
        (["needs_reauth"], "connection_expired"),
        (["revoked"], "connection_revoked"),
        (["revoked", "revoked"], "connection_revoked"),
        (["connected", "revoked"], "uses 0"),
        (["needs_reauth", "revoked"], "connection_expired"),
        (["connected", "connected"], "connection_ambiguous"),
        (["connected", "needs_reauth"], "connection_ambiguous"),
        (["needs_reauth", "needs_reauth"], "connection_ambiguous"),
    ],
)
def test_a_call_that_names_no_connection_has_the_only_one_or_a_stable_code(states: list[str], expected: str) -> None:
    assert code(states) == expected


@pytest.mark.parametrize(
    ("state", "expected"),
    [("connected", "uses 0"), ("needs_reauth", "connection_expired"), ("revoked", "connection_revoked")],
)
def test_a_named_connection_is_used_or_says_what_is_wrong_with_it(state: str, expected: str) -> None:
    assert code([state, "connected"], named=0) == expected


def test_an_id_that_names_nothing_here_is_not_found() -> None:
    found = chosen([stored("connected")], connection_id=UUID(int=1))
    assert isinstance(found, Unconnected)
    assert found.code == "not_found"


def test_an_ambiguous_call_learns_which_accounts_there_are() -> None:
    rows = [
        stored("connected", address="ada@fjord.example"),
        stored("connected", grant_id="g-1", email="bo@fjord.example"),
        stored("needs_reauth"),
        stored("revoked"),
    ]
    found = chosen(rows, connection_id=None)
    assert isinstance(found, Unconnected)
    assert found.choices == (
        f"{rows[0].id} connected box (ada@fjord.example)",
        f"{rows[1].id} connected box (bo@fjord.example)",
        f"{rows[2].id} needs_reauth box, which must be connected again",
    )


@pytest.mark.parametrize(
    ("label", "facts", "name"),
    [
        ("Ada", {}, "Ada"),
        ("Ada", {"grant_id": "g-1"}, "Ada"),
        ("Ada", {"email": "", "address": "ada@fjord.example"}, "Ada (ada@fjord.example)"),
        ("ada@fjord.example", {"email": "ada@fjord.example"}, "ada@fjord.example"),
        ("a" * 200, {"email": "b" * 200}, f"{'a' * 119}… ({'b' * 119}…)"),
    ],
)
def test_an_account_is_known_by_its_label_and_its_address(label: str, facts: dict[str, str], name: str) -> None:
    assert account_name(label, facts) == name
