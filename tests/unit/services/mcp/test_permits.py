"""Which addresses a deployment lets an organization's admin name for a server."""

import pytest

from agentic.contract.errors import ProgramFault
from agentic.services.mcp.config import HttpEndpoint, Owner, ServerConfig
from agentic.services.mcp.permits import VARIABLE, permits_from_environment, permits_of, read_permits
from agentic.services.tools.handlers.egress import Origin


def lets(text: str, origin: str) -> bool:
    return read_permits(text)(Origin.parse(origin))


@pytest.mark.parametrize(
    ("text", "origin", "through"),
    [
        ("", "https://tools.vendor.example", False),
        ("https://tools.vendor.example", "https://tools.vendor.example", True),
        ("https://tools.vendor.example", "https://tools.vendor.example:8443", False),
        ("https://tools.vendor.example:8443", "https://tools.vendor.example:8443", True),
        ("https://tools.vendor.example", "https://other.vendor.example", False),
        ("https://a.example , https://b.example,", "https://b.example", True),
        ("https://*.vendor.example", "https://tools.vendor.example", True),
        ("https://*.vendor.example", "https://a.b.vendor.example", True),
        ("https://*.vendor.example", "https://vendor.example", False),
        ("https://*.vendor.example", "https://evilvendor.example", False),
        ("https://*.vendor.example", "https://tools.vendor.example:8443", False),
        ("https://*.vendor.example", "http://localhost:80", False),
    ],
)
def test_an_origin_is_let_through_by_its_entry_alone(text: str, origin: str, through: bool) -> None:
    assert lets(text, origin) is through


@pytest.mark.parametrize(
    "text",
    [
        "tools.vendor.example",
        "http://tools.vendor.example",
        "https://*.example",
        "https://*.10.0.0.1",
        "https://*.vendor.example:8443",
        "https://*.vendor.example/path",
        "https://*.*.example",
        "*",
    ],
)
def test_an_entry_that_is_no_origin_keeps_the_deployment_from_starting(text: str) -> None:
    with pytest.raises(ProgramFault, match=VARIABLE):
        read_permits(text)


def test_nothing_is_let_through_where_the_variable_is_not_set() -> None:
    origin = Origin.parse("https://tools.vendor.example")
    assert not permits_from_environment({})(origin)
    assert permits_from_environment({VARIABLE: "https://tools.vendor.example"})(origin)


def test_an_operators_server_is_permitted_by_being_configured_and_a_tenants_by_the_list() -> None:
    endpoint = HttpEndpoint(url="https://tools.vendor.example/mcp")
    origin = Origin.parse("https://tools.vendor.example")
    operator = ServerConfig(server_id="notes", owner=Owner.OPERATOR, endpoint=endpoint)
    tenant = ServerConfig(server_id="notes", owner=Owner.TENANT, endpoint=endpoint)
    closed = read_permits("")
    assert permits_of(operator, closed)(origin) and not permits_of(tenant, closed)(origin)
