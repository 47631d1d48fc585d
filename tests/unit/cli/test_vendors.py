"""Which vendors a command reaches: the stand-ins of its folder's services, and only over the database that these work on."""

import os
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from agentic.cli.vendors import reach_vendors_of
from agentic.local.dev.address import DevAddress, announced
from agentic.local.home import Home

DATABASE = "postgresql://me:secret@db.example:5432/product"
REAL = {"EXA_API_KEY": "a-real-key", "AGENTIC_VAULT_KEYS": ""}
STAND_INS = {"EXA_ORIGIN": "http://127.0.0.1:4", "EXA_API_KEY": "stand-in-key-of-exa"}


@pytest.fixture(autouse=True)
def own_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever a command sets is taken back."""
    monkeypatch.setattr(os, "environ", {**REAL})


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Home]:
    """A folder whose services run over stand-ins."""
    monkeypatch.setattr(httpx, "get", lambda *_, **__: httpx.Response(200, json={"engine": "agentic"}))
    (tmp_path / "identity.json").write_text("{}")  # a folder of ours
    address = DevAddress(
        engine="http://127.0.0.1:1",
        functions_port=2,
        app="product:app",
        database="product at db.example:5432",
        folder=str(tmp_path.resolve()),
        pid=3,
        stand_ins=STAND_INS,
    )
    with announced(tmp_path, address):
        yield Home(tmp_path)


def environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}


@pytest.mark.parametrize("database_url", [DATABASE, None])
def test_beside_stand_ins_a_command_reaches_them_and_opens_their_connections(
    home: Home, database_url: str | None
) -> None:
    reach_vendors_of(home, database_url)
    assert environment() == {**STAND_INS, "AGENTIC_VAULT_KEYS": home.vault_key()}


def test_a_key_of_the_vault_that_is_set_stays(home: Home) -> None:
    os.environ["AGENTIC_VAULT_KEYS"] = "of-the-deployment"
    reach_vendors_of(home, DATABASE)
    assert environment() == {**STAND_INS, "AGENTIC_VAULT_KEYS": "of-the-deployment"}


def test_a_command_over_another_database_reaches_the_real_vendors(home: Home) -> None:
    reach_vendors_of(home, DATABASE.replace("product", "production"))
    assert environment() == REAL


def test_services_that_were_killed_stand_in_for_nobody(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    def nobody(*_: object, **__: object) -> httpx.Response:
        raise httpx.ConnectError("refused")

    monkeypatch.setattr(httpx, "get", nobody)
    reach_vendors_of(home, DATABASE)
    assert environment() == REAL
