"""A configuration that cannot work, or that reaches too far, is refused when it is written (gate 14)."""

from typing import Any

import pytest

from agentic.services.mcp.config import Classification, ServerConfig
from agentic.services.mcp.config_check import ServerRefused, read_server
from agentic.services.mcp.environment import BASE_NAMES, child_environment
from agentic.services.tools.handlers.egress import Origin
from agentic.services.tools.models import IdempotencyClass, Risk, SideEffects

HTTP = {"type": "http", "url": "https://tools.vendor.example/mcp"}
STDIO = {"type": "stdio", "command": ["notes-server", "--quiet"]}


def permits(origin: Origin) -> bool:
    return origin.host.endswith("vendor.example") or origin.loopback


def read(auth: dict[str, Any] | None = None, *, endpoint: Any = HTTP, **more: Any) -> ServerConfig:
    owner = "operator" if endpoint["type"] == "stdio" else "tenant"
    raw = {"server_id": "notes", "owner": owner, "endpoint": endpoint, "authentication": auth or {}, **more}
    return read_server(raw, permits=permits)


def faults(auth: dict[str, Any] | None = None, **more: Any) -> tuple[str, ...]:
    with pytest.raises(ServerRefused) as refused:
        read(auth, **more)
    return refused.value.faults


def oauth(**more: Any) -> dict[str, Any]:
    token_endpoint = "https://login.vendor.example/token"
    return {"scheme": "oauth2_client", "credential_ref": "v:1", "token_endpoint": token_endpoint, **more}


@pytest.mark.parametrize(
    ("auth", "endpoint"),
    [
        ({}, HTTP),
        ({}, STDIO),
        ({"scheme": "bearer", "credential_ref": "v:1"}, HTTP),
        ({"scheme": "header", "credential_ref": "v:1", "name": "X-Api-Key"}, HTTP),
        (oauth(token_scopes=["tools:read"]), HTTP),
        ({"scheme": "env", "credential_ref": "v:1", "name": "API_TOKEN"}, STDIO),
    ],
)
def test_each_of_the_five_schemes_stands_where_it_belongs(auth: dict[str, Any], endpoint: Any) -> None:
    assert read(auth, endpoint=endpoint).authentication.scheme == auth.get("scheme", "none")


@pytest.mark.guarantee("T4")
@pytest.mark.parametrize(
    ("auth", "endpoint", "fault"),
    [
        ({"scheme": "mutual_tls", "credential_ref": "v:1"}, HTTP, "authentication.scheme"),
        ({"scheme": "none", "credential_ref": "v:1"}, HTTP, "uses no credential"),
        ({"scheme": "bearer"}, HTTP, "needs a credential_ref"),
        ({"scheme": "env", "name": "API_TOKEN"}, STDIO, "needs a credential_ref"),
        ({"scheme": "header", "credential_ref": "v:1"}, HTTP, "needs a name"),
        ({"scheme": "header", "credential_ref": "v:1", "name": "X Api"}, HTTP, "needs a name"),
        ({"scheme": "header", "credential_ref": "v:1", "name": "X" * 65}, HTTP, "needs a name"),
        ({"scheme": "env", "credential_ref": "v:1"}, STDIO, "needs a name"),
        ({"scheme": "header", "credential_ref": "v:1", "name": "aUthorization"}, HTTP, "scheme bearer"),
        ({"scheme": "header", "credential_ref": "v:1", "name": "Mcp-Session-Id"}, HTTP, "belongs to the protocol"),
        ({"scheme": "bearer", "credential_ref": "v:1", "name": "X-Api-Key"}, HTTP, "has no name"),
        *(({"scheme": "env", "credential_ref": "v:1", "name": name}, STDIO, "every child gets") for name in sorted(BASE_NAMES)),
        ({"scheme": "env", "credential_ref": "v:1", "name": "API_TOKEN"}, HTTP, "is for stdio"),
        ({"scheme": "bearer", "credential_ref": "v:1"}, STDIO, "is for HTTP"),
        ({"scheme": "header", "credential_ref": "v:1", "name": "X-Api-Key"}, STDIO, "is for HTTP"),
        (oauth(), STDIO, "is for HTTP"),
        ({"scheme": "oauth2_client", "credential_ref": "v:1"}, HTTP, "needs a token_endpoint"),
        (oauth(token_endpoint="https://elsewhere.example/token"), HTTP, "egress allow-list"),
        (oauth(token_endpoint="https://169.254.169.254/token"), HTTP, "inside this network"),
        (oauth(token_endpoint="http://login.vendor.example/token"), HTTP, "in the clear"),
        (oauth(token_scopes=['a"b']), HTTP, "printable ASCII"),
        ({"scheme": "bearer", "credential_ref": "v:1", "token_endpoint": "https://login.vendor.example/"}, HTTP, "are for the scheme oauth2_client"),
    ],
)  # fmt: skip
def test_an_authentication_that_cannot_work_is_refused_with_its_remedy(
    auth: dict[str, Any], endpoint: Any, fault: str
) -> None:
    assert any(fault in found for found in faults(auth, endpoint=endpoint))


@pytest.mark.parametrize(
    ("endpoint", "fault"),
    [
        ({"type": "http", "url": "https://elsewhere.example/mcp"}, "egress allow-list"),
        ({"type": "http", "url": "https://10.1.2.3/mcp"}, "inside this network"),
        ({"type": "http", "url": "http://localhost:8080/mcp"}, "leads to this machine"),
        ({"type": "http", "url": "http://tools.vendor.example/mcp"}, "in the clear"),
        ({"type": "http", "url": "https://ada:pw@tools.vendor.example/mcp"}, "credentials belong into headers"),
        ({"type": "http", "url": "https://tools.vendor.example/mcp?api_key=k"}, "credential in its query"),
        ({"type": "http", "url": "tools.vendor.example/mcp"}, "such as https://tools.vendor.example/mcp"),
        ({"type": "http", "url": "https://tools.vendor.example/mcp#x"}, "without a fragment"),
        ({"type": "http", "url": "https://[tools.vendor.example/mcp"}, "no IPv6 address"),
        ({"type": "websocket", "url": "wss://tools.vendor.example/"}, "endpoint"),
    ],
)
def test_an_address_that_reaches_too_far_is_refused(endpoint: Any, fault: str) -> None:
    assert any(fault in found for found in faults(endpoint=endpoint))


@pytest.mark.guarantee("T4")
def test_a_tenant_starts_no_process_of_this_machine() -> None:
    assert any("deployment's configuration alone" in found for found in faults(endpoint=STDIO, owner="tenant"))


@pytest.mark.parametrize(
    "launch",
    [
        {"variables": {"API_TOKEN": "t"}},
        {"variables": {"PATH": "/x"}},
        {"variables": {"A=B": "x"}},
        {"command": [" "]},
        {"command": ["a\0b"]},
        {"cwd": "relative"},
        {"home": "relative"},
    ],
)
def test_a_launch_that_hides_a_secret_or_changes_the_base_is_refused(launch: dict[str, Any]) -> None:
    assert faults(endpoint={**STDIO, **launch})


def test_a_variable_is_a_setting_or_the_credential() -> None:
    auth = {"scheme": "env", "credential_ref": "v:1", "name": "MODE"}
    assert faults(auth, endpoint={**STDIO, "variables": {"MODE": "x"}})


@pytest.mark.parametrize("server_id", ["", "1st", "Notes", "a-b", "a.b", "a" * 25])
def test_a_server_is_named_by_a_word_that_fits_into_its_tools_names(server_id: str) -> None:
    assert any("server_id" in found for found in faults(server_id=server_id))


@pytest.mark.guarantee("T4")
def test_what_nobody_classified_is_treated_as_the_worst_there_is() -> None:
    said = read().classified("anything")
    assert (said.side_effects, said.risk, said.idempotency, said.parallel_safe) == (
        SideEffects.SEND,
        Risk.HIGH,
        IdempotencyClass.NON_IDEMPOTENT,
        False,
    )


def test_an_operator_classifies_a_server_and_single_tools_of_it() -> None:
    read_only = {"side_effects": "read", "risk": "low", "idempotency": "read_only", "parallel_safe": True}
    config = read(classification=read_only, per_tool={"wipe": {}})
    assert config.classified("find") == Classification.model_validate(read_only)
    assert config.classified("wipe") == Classification()


@pytest.mark.parametrize(
    "said",
    [
        {"side_effects": "write", "idempotency": "read_only"},
        {"side_effects": "read", "idempotency": "non_idempotent"},
        {"side_effects": "write", "idempotency": "conditional"},
        {"side_effects": "write", "idempotency": "idempotent", "parallel_safe": True},
    ],
)
def test_a_classification_that_contradicts_itself_is_refused(said: dict[str, Any]) -> None:
    assert faults(classification=said) and faults(per_tool={"x": said})


def test_no_fault_quotes_what_could_be_a_secret() -> None:
    auth = {"scheme": "bearer", "credential_ref": ["tok-live-77"], "token": "tok-live-77"}
    assert "tok-live-77" not in " ".join(faults(auth))


def test_the_base_of_an_environment_wins_over_everything() -> None:
    built = child_environment(home="/h", path="/p", variables={"MODE": "x"}, credential={"API_TOKEN": "t"})
    assert set(built) == BASE_NAMES | {"MODE", "API_TOKEN"} and built["HOME"] == "/h" and built["PATH"] == "/p"
