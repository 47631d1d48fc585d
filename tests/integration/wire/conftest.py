"""What every test over a wire runs under."""

from collections.abc import Iterator
from pathlib import Path

import certifi
import pytest

from warm_processes import Warm


@pytest.fixture(scope="session")
def one_certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate bundle of one; reading the whole one, for each client of a loopback test, takes most of its time."""
    text = Path(certifi.where()).read_text()
    end = "-----END CERTIFICATE-----"
    path = tmp_path_factory.mktemp("certificates") / "one.pem"
    path.write_text(text[: text.index(end) + len(end)] + "\n")
    return path


@pytest.fixture(autouse=True)
def fast_clients(one_certificate: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Clients read the short bundle."""
    monkeypatch.setenv("SSL_CERT_FILE", str(one_certificate))


@pytest.fixture(scope="session")
def dying() -> Iterator[Warm]:
    """Forks the processes that die in these tests from one that has imported whatever leads a run."""
    processes = Warm("agentic.bootstrap.opening", "agentic.runtime.agent.agno.runtime", "wire_app")
    yield processes
    processes.close()
