"""Where a command's events go: to whom the environment names, else to the folder's own services on the same database."""

from pathlib import Path

import pytest

from agentic.cli.event_bus import SERVER_VARIABLES, bus_of
from agentic.functions.bus import InngestBus
from agentic.local.dev import address
from agentic.local.dev.address import DevAddress

DATABASE = "postgresql://me:secret@db.example:5432/product"


@pytest.fixture(autouse=True)
def nobody_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*SERVER_VARIABLES, "NO_PROXY", "no_proxy"):
        monkeypatch.setenv(name, "")


def services_on(database: str) -> DevAddress:
    return DevAddress(
        engine="http://127.0.0.1:1", functions_port=2, app="product:app", database=database, folder="/product", pid=3
    )


def test_without_any_services_the_events_are_left_to_the_sweep(tmp_path: Path) -> None:
    assert bus_of(tmp_path, DATABASE) is None


def test_the_services_of_the_folder_are_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(address, "running", lambda _folder: services_on("product at db.example:5432"))
    assert isinstance(bus_of(tmp_path, DATABASE), InngestBus)


def test_services_on_another_database_are_not_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(address, "running", lambda _folder: services_on("other at db.example:5432"))
    assert bus_of(tmp_path, DATABASE) is None


def test_a_server_that_the_environment_names_is_told_whatever_runs_here(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("INNGEST_DEV", "http://127.0.0.1:8288")
    assert isinstance(bus_of(tmp_path, DATABASE), InngestBus)
