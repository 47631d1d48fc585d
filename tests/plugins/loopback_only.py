"""Keeps the test run on this machine: Python sockets reach loopback and unix addresses, nothing else.

It stands on the interpreter's audit events, so it sees every library that opens Python sockets. It does not see child
processes, nor C libraries that open their own; libpq is kept here by the URLs the fixtures hand out.
"""

import ipaddress
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest

_LOCAL_NAMES = frozenset({"localhost", "localhost.", "", "ip6-localhost"})
_refused: list[str] = []


class OutsideNetwork(OSError):
    """A test reached for an address that is not of this machine; libraries clean up after it as after any dead address."""


@contextmanager
def refusals_expected() -> Iterator[list[str]]:
    """Lets a test of the guard itself provoke refusals; yields the list of what was refused inside."""
    before = len(_refused)
    inside: list[str] = []
    try:
        yield inside
    finally:
        inside += _refused[before:]
        del _refused[before:]


def is_of_this_machine(address: object) -> bool:
    """Tells whether a socket address, or the host part of one, stays on this machine."""
    if isinstance(address, tuple):
        return is_of_this_machine(address[0])
    if address is None or isinstance(address, int):
        return True  # getaddrinfo's "any local interface"; a netlink or packet socket's number
    host = address.decode(errors="replace") if isinstance(address, bytes | bytearray) else str(address)
    if host.startswith(("/", "\0")) or host.lower() in _LOCAL_NAMES:
        return True
    try:
        ip = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return False
    # the unspecified address is none: a listener on it is open to everyone
    return ip.is_loopback


def _asks_a_name_server(host: object) -> bool:
    if is_of_this_machine(host):
        return False
    text = host.decode(errors="replace") if isinstance(host, bytes | bytearray) else str(host)
    with suppress(ValueError):
        ipaddress.ip_address(text.partition("%")[0])
        return False
    with suppress(OSError):
        socket.inet_aton(text)  # the C library's other ways to write a number: octal, hexadecimal, fewer parts
        return False
    return True


def _hook(event: str, arguments: tuple[object, ...]) -> None:
    if event in ("socket.connect", "socket.sendto", "socket.bind"):
        # the audit event passes the socket and the address
        address, outside = arguments[1], not is_of_this_machine(arguments[1])
    elif event in ("socket.getaddrinfo", "socket.gethostbyname"):
        address, outside = arguments[0], _asks_a_name_server(arguments[0])
    else:
        return
    if outside:
        sentence = f"{event} of {address!r}: tests stay on this machine; use a stand-in on 127.0.0.1"
        _refused.append(sentence)
        raise OutsideNetwork(sentence)


def pytest_configure(config: pytest.Config) -> None:
    """Starts the guard for the life of the process; an audit hook cannot be removed."""
    del config
    if not getattr(sys, "_agentic_loopback_only", False):
        sys.addaudithook(_hook)
        sys._agentic_loopback_only = True  # type: ignore[attr-defined]


@pytest.fixture(autouse=True)
def _loopback_only() -> Iterator[None]:
    """Fails a test whose code swallowed the refusal, as retry loops do."""
    _refused.clear()
    yield
    assert not _refused, "\n".join(_refused)
