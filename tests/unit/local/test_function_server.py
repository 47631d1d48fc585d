"""Which function server the environment names, and whether anybody is there."""

import socket

import pytest

from agentic.local.function_server import FunctionServerAway, NamedServer, named_server, require_reachable


@pytest.mark.parametrize("said", [{}, {"INNGEST_DEV": ""}, {"INNGEST_DEV": "0"}, {"INNGEST_DEV": "False"}])
def test_without_a_name_the_embedded_engine_serves(said: dict[str, str]) -> None:
    assert named_server(said) is None


def test_a_plain_yes_means_the_address_the_sdk_would_use() -> None:
    assert named_server({"INNGEST_DEV": "1"}) == NamedServer(variable="INNGEST_DEV", url="http://127.0.0.1:8288")


def test_a_base_url_counts_before_the_development_switch() -> None:
    said = {"INNGEST_BASE_URL": "http://127.0.0.1:9000", "INNGEST_DEV": "http://127.0.0.1:8288"}
    assert named_server(said) == NamedServer(variable="INNGEST_BASE_URL", url="http://127.0.0.1:9000")


def test_a_server_that_listens_is_reachable_and_one_that_is_gone_is_named_with_the_remedy() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        require_reachable(NamedServer(variable="INNGEST_DEV", url=url))
    with pytest.raises(FunctionServerAway, match="unset INNGEST_DEV") as away:
        require_reachable(NamedServer(variable="INNGEST_DEV", url=url))
    assert url in str(away.value)


def test_an_address_with_an_impossible_port_is_said_to_be_away() -> None:
    with pytest.raises(FunctionServerAway):
        require_reachable(NamedServer(variable="INNGEST_DEV", url="http://127.0.0.1:99999"))
