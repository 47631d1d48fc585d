"""The guard that keeps tests on this machine."""

import asyncio
import socket

import pytest

from loopback_only import OutsideNetwork, is_of_this_machine, refusals_expected

# addresses of documentation (RFC 5737, RFC 3849), which nobody answers
OUTSIDE = ["203.0.113.1", "2001:db8::1", "0.0.0.0", "10.0.0.1", "api.vendor.example"]


@pytest.mark.parametrize("host", OUTSIDE)
def test_an_address_elsewhere_is_refused_before_anything_leaves(host: str) -> None:
    with refusals_expected() as refused, pytest.raises(OutsideNetwork, match="tests stay on this machine"):
        socket.create_connection((host, 9), timeout=1)
    assert len(refused) == 1


def test_a_listener_on_every_interface_is_refused() -> None:
    with refusals_expected(), socket.socket() as listener, pytest.raises(OutsideNetwork):
        listener.bind(("0.0.0.0", 0))


async def test_a_coroutine_is_refused_too() -> None:
    with refusals_expected(), pytest.raises(OutsideNetwork):
        await asyncio.wait_for(asyncio.open_connection("203.0.113.1", 9), timeout=5)


def test_a_number_is_parsed_without_asking_anyone() -> None:
    assert socket.getaddrinfo("0x7f000001", 9, type=socket.SOCK_STREAM)[0][4] == ("127.0.0.1", 9)


def test_loopback_connects() -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        with socket.create_connection(listener.getsockname(), timeout=5) as connection:
            assert connection.getpeername() == listener.getsockname()


@pytest.mark.parametrize(
    "address", ["/run/postgres/.s.PGSQL.5432", "\0abstract", b"/run/socket", None, ("::1", 1, 0, 0)]
)
def test_unix_sockets_and_loopback_are_of_this_machine(address: object) -> None:
    assert is_of_this_machine(address)
