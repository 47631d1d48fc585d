"""A start that may be a download has the time for one, and what a cut off one left is not kept."""

from pathlib import Path

import pytest

from agentic.cli.mcp_fetching import FETCH_S, drop_unpacked, fetches, with_time_to_fetch
from agentic.services.mcp.config import HttpEndpoint, ServerConfig, StdioLaunch, Timeouts


def started(*command: str, connect_s: float = 10) -> ServerConfig:
    return ServerConfig(
        server_id="notes", endpoint=StdioLaunch(command=command), timeouts=Timeouts(connect_s=connect_s)
    )


@pytest.mark.parametrize("program", ["npx", "/opt/node/bin/npx", "uvx", "docker"])
def test_a_program_that_may_download_its_server_has_the_time_for_it(program: str) -> None:
    given = with_time_to_fetch(started(program, "-y", "notes"))
    assert fetches(given)
    assert given.timeouts == Timeouts(connect_s=FETCH_S)


def test_what_downloads_nothing_and_what_somebody_has_said_stays() -> None:
    for config in (
        started("python", "-m", "npx"),
        started("npx", "notes", connect_s=20),
        ServerConfig(server_id="notes", endpoint=StdioLaunch(command=("npx", "notes"), start_s=10)),
        ServerConfig(server_id="far", endpoint=HttpEndpoint(url="https://npx")),
    ):
        assert with_time_to_fetch(config) is config


def test_of_a_home_what_was_unpacked_goes_and_the_rest_stays(tmp_path: Path) -> None:
    assert not drop_unpacked(tmp_path)
    (tmp_path / ".npm" / "_npx" / "1").mkdir(parents=True)
    (tmp_path / ".npm" / "_cacache").mkdir()
    assert drop_unpacked(tmp_path)
    assert [each.name for each in (tmp_path / ".npm").iterdir()] == ["_cacache"]
