"""Where the services of a folder are: told to those who stand in it, and not in a copy of it."""

import shutil
from pathlib import Path

import httpx
import pytest

from agentic.contract.errors import ProgramFault
from agentic.local.dev.address import DevAddress, announced, running
from agentic.local.function_server import BASE_URL, DEV
from agentic.local.home import DATABASE_URL, Home
from agentic.local.worker.joining import join_and_serve


@pytest.fixture
def services(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> DevAddress:
    """Services of a folder whose engine answers."""

    def answer(url: str, **_: object) -> httpx.Response:
        return httpx.Response(200, json={"engine": "agentic"})

    monkeypatch.setattr(httpx, "get", answer)
    folder = tmp_path / "product"
    folder.mkdir()
    (folder / "identity.json").write_text("{}")  # a folder of ours
    return DevAddress(
        engine="http://127.0.0.1:1",
        functions_port=2,
        app="product:app",
        database="product at db.example:5432",
        folder=str(folder.resolve()),
        pid=3,
    )


def test_services_are_found_in_their_folder_while_they_run(services: DevAddress) -> None:
    folder = Path(services.folder)
    with announced(folder, services):
        assert running(folder) == services
    assert running(folder) is None


def test_a_copy_of_the_folder_has_no_services(services: DevAddress, tmp_path: Path) -> None:
    folder = Path(services.folder)
    with announced(folder, services):
        shutil.copytree(folder, tmp_path / "copy")
        assert running(tmp_path / "copy") is None


def test_a_worker_on_another_database_does_not_join(services: DevAddress, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (DEV, BASE_URL, "INNGEST_SIGNING_KEY"):
        monkeypatch.setenv(name, "")
    monkeypatch.setenv(DATABASE_URL, "postgresql://me:secret@db.example:5432/other")
    folder = Path(services.folder)
    with announced(folder, services), pytest.raises(ProgramFault, match="would on other at") as refused:
        join_and_serve("product:app", Home(folder), port=None, say=print, again="agentic")
    assert "secret" not in str(refused.value)
