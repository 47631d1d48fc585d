"""Where the governed HTTP client may connect to: the origin it was given, at addresses that are not ours.

Pure parsing and judging, plus the one resolution. The client connects to the address that was judged, never to the name again,
so a name that answers differently the second time gains nothing.
"""

import asyncio
import ipaddress
import re
import socket
from dataclasses import dataclass
from urllib.parse import SplitResult, urlsplit

from agentic.services.tools.handlers.errors import EgressRefused, RetryableUpstreamError, UpstreamUnavailableError

IPAddress = ipaddress.IPv4Address | ipaddress.IPv6Address

_DEFAULT_PORTS = {"https": 443, "http": 80}
_TARGET = re.compile(r"[\x21-\x7e]+")
_HOST = re.compile(r"[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\]")
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
_CLOUD_INTERNAL = (
    # Reachable like public addresses by the standard's tables, yet answered inside the cloud: Azure's host agent, Oracle's metadata.
    ipaddress.ip_network("168.63.129.16/32"),
    ipaddress.ip_network("192.0.0.0/24"),
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Origin:
    """Scheme, host and port one client may reach."""

    scheme: str
    host: str
    """Lower case; an IPv6 literal without brackets."""
    port: int
    loopback: bool
    """The host was written as a loopback name or literal, so loopback addresses, and only these, are meant."""

    @classmethod
    def parse(cls, text: str) -> "Origin":
        """Read an origin such as ``https://api.vendor.example``.

        Raises:
            EgressRefused: it is not a bare origin, speaks plain HTTP to something other than loopback, or names a private address.
        """
        parts = urlsplit(text)
        if (
            parts.scheme not in _DEFAULT_PORTS
            or not parts.hostname
            or parts.path.strip("/")
            or parts.query
            or parts.fragment
        ):
            raise EgressRefused(
                "a client's origin must look like https://api.vendor.example, without path, query or fragment"
            )
        origin = _of(parts)
        if origin.scheme == "http" and not origin.loopback:
            raise EgressRefused(f"http://{origin.host} would carry the credential in the clear; give its https origin")
        literal = _literal(origin.host)
        if literal is not None:
            judge(literal, origin)
        return origin

    @property
    def text(self) -> str:
        """As it stands in a URL, the default port left out."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return (
            f"{self.scheme}://{host}"
            if self.port == _DEFAULT_PORTS[self.scheme]
            else f"{self.scheme}://{host}:{self.port}"
        )

    def url(self, target: str) -> str:
        """The URL of ``target``: a path with query, or an absolute URL of this very origin (a vendor's link to its next page).

        Raises:
            EgressRefused: the target names another origin, is no path, or is not escaped to printable ASCII.
        """
        if not _TARGET.fullmatch(target):
            raise EgressRefused(f"the target below {self.text} is not escaped; quote it to printable ASCII")
        if target.startswith("/") and not target.startswith("//") and "\\" not in target:
            return self.text + target
        parts = urlsplit(target)
        if parts.scheme in _DEFAULT_PORTS and parts.hostname and _of(parts) == self:
            return self.text + (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        raise EgressRefused(f"the target is not a path of {self.text}; this client reaches that origin alone")


def judge(address: IPAddress, origin: Origin) -> None:
    """Refuse an address the origin must not lead to.

    Raises:
        EgressRefused: loopback without the origin saying so, private, link-local, cloud metadata, multicast or reserved.
    """
    embedded = _embedded(address)
    if origin.loopback:
        if not embedded.is_loopback:
            raise EgressRefused(f"{origin.host} leads to {address}, which is not this machine")
        return
    internal = any(embedded.version == network.version and embedded in network for network in _CLOUD_INTERNAL)
    if internal or not embedded.is_global or embedded.is_multicast or embedded.is_reserved:
        raise EgressRefused(
            f"{origin.host} leads to {address}, an address inside this network; vendors are reached on public ones"
        )


async def addresses(origin: Origin) -> list[str]:
    """Every address the origin's host has now, judged. One bad address refuses them all: a mixed answer is an attack or a mistake.

    Raises:
        EgressRefused: one of them is not allowed.
        UpstreamUnavailableError: the name does not exist.
        RetryableUpstreamError: the name server did not answer.
    """
    literal = _literal(origin.host)
    if literal is not None:
        judge(literal, origin)
        return [str(literal)]
    loop = asyncio.get_running_loop()
    try:
        found = await loop.getaddrinfo(origin.host, origin.port, type=socket.SOCK_STREAM)
    except socket.gaierror as problem:
        if problem.errno == socket.EAI_NONAME:
            raise UpstreamUnavailableError(f"{origin.host}: no such host; check the origin") from problem
        raise RetryableUpstreamError(
            f"{origin.host}: the name could not be resolved just now; nothing was sent"
        ) from problem
    except UnicodeError as problem:
        raise UpstreamUnavailableError(f"{origin.host}: not a host name; check the origin") from problem
    result: list[str] = []
    for *_, sockaddr in found:
        text = str(sockaddr[0])
        judge(ipaddress.ip_address(text), origin)
        if text not in result:
            result.append(text)
    return result


def _of(parts: SplitResult) -> Origin:
    try:
        port = parts.port
    except ValueError:
        raise EgressRefused("the port of an origin must be a number up to 65535") from None
    host = (parts.hostname or "").lower()
    netloc_host = parts.netloc.rpartition(":")[0] if port is not None else parts.netloc
    if parts.username is not None or parts.password is not None or not _HOST.fullmatch(netloc_host):
        raise EgressRefused("an origin names scheme, host and port only; credentials belong into headers")
    literal = _literal(host)
    loopback = host == "localhost" or (literal is not None and _embedded(literal).is_loopback)
    return Origin(
        scheme=parts.scheme,
        host=host,
        port=port if port is not None else _DEFAULT_PORTS[parts.scheme],
        loopback=loopback,
    )


def _literal(host: str) -> IPAddress | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


def _embedded(address: IPAddress) -> IPAddress:
    """The IPv4 address a transition form leads to, or the address itself. Such forms count as global in the standard's tables."""
    if isinstance(address, ipaddress.IPv4Address):
        return address
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    if address.sixtofour is not None:
        return address.sixtofour
    if address in _NAT64:
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return address
