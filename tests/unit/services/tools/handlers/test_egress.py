import ipaddress

import pytest

from agentic.services.tools.handlers.egress import Origin, addresses, judge
from agentic.services.tools.handlers.errors import EgressRefused

VENDOR = Origin.parse("https://api.vendor.example")
LOCAL = Origin.parse("http://127.0.0.1:8080")


@pytest.mark.parametrize(
    "text",
    [
        "https://10.0.0.7",
        "https://192.168.1.1",
        "https://169.254.169.254",
        "https://[fe80::1]",
        "https://[fd00:ec2::254]",
        "https://[::ffff:10.0.0.7]",
        "https://[64:ff9b::a9fe:a9fe]",
        "https://[2002:0a00:0007::1]",
        "https://168.63.129.16",
        "https://192.0.0.192",
        "https://100.100.100.200",
        "https://0.0.0.0",
        "https://224.0.0.1",
        "http://api.vendor.example",
        "http://10.0.0.7",
        "ftp://api.vendor.example",
        "https://user:pass@api.vendor.example",
        "https://api.vendor.example/v3",
        "https://api.vendor.example?x=1",
        "https://api.vendor.example:99999",
        "https://api vendor.example",
        "api.vendor.example",
        "",
    ],
)
def test_an_origin_that_is_not_a_public_https_one_or_loopback_is_refused(text: str) -> None:
    with pytest.raises(EgressRefused):
        Origin.parse(text)


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("https://api.vendor.example", "https://api.vendor.example"),
        ("https://API.Vendor.example:443/", "https://api.vendor.example"),
        ("https://api.vendor.example:8443", "https://api.vendor.example:8443"),
        ("http://localhost:9", "http://localhost:9"),
        ("http://127.0.0.1:9", "http://127.0.0.1:9"),
        ("http://[::1]:9", "http://[::1]:9"),
        ("https://203.0.114.9", "https://203.0.114.9"),
    ],
)
def test_an_origin_is_read_and_written_in_one_form(text: str, written: str) -> None:
    assert Origin.parse(text).text == written


@pytest.mark.parametrize(
    "address", ["127.0.0.1", "::1", "::ffff:127.0.0.1", "10.1.2.3", "169.254.169.254", "100.64.0.1", "ff02::1"]
)
def test_a_vendors_name_may_not_lead_to_an_inner_address(address: str) -> None:
    with pytest.raises(EgressRefused):
        judge(ipaddress.ip_address(address), VENDOR)


def test_a_vendors_name_may_lead_to_a_public_address() -> None:
    judge(ipaddress.ip_address("93.184.215.14"), VENDOR)
    judge(ipaddress.ip_address("2606:2800:21f:cb07:6820:80da:af6b:8b2c"), VENDOR)


@pytest.mark.parametrize("address", ["10.1.2.3", "169.254.169.254", "93.184.215.14"])
def test_a_loopback_origin_leads_to_loopback_only(address: str) -> None:
    with pytest.raises(EgressRefused):
        judge(ipaddress.ip_address(address), LOCAL)


async def test_a_number_that_hides_loopback_behind_a_name_is_refused() -> None:
    with pytest.raises(EgressRefused):
        await addresses(Origin.parse("https://2130706433"))
