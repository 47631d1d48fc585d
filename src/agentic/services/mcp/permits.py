"""The deployment's egress allow-list: which addresses an organization's admin may name for a server. Closed unless the deployment opens it.

Which addresses a name leads to is judged at every dial besides; no entry lets anybody into this network.
"""

import os
from collections.abc import Mapping
from typing import Final

from agentic.contract.errors import ProgramFault
from agentic.services.mcp.config import Owner, ServerConfig
from agentic.services.mcp.config_check import Permits
from agentic.services.tools.handlers.egress import Origin
from agentic.services.tools.handlers.errors import EgressRefused

VARIABLE: Final = "AGENTIC_EGRESS_ALLOW"
_ANY_OF: Final = "https://*."


def permits_from_environment(environment: Mapping[str, str] | None = None) -> Permits:
    """The allow-list that the variable ``AGENTIC_EGRESS_ALLOW`` holds; nothing is let through where it is not set.

    Raises:
        ProgramFault: an entry is no origin.
    """
    return read_permits((os.environ if environment is None else environment).get(VARIABLE, ""))


def read_permits(text: str) -> Permits:
    """Read an allow-list.

    Args:
        text: origins such as ``https://tools.vendor.example``, separated by commas; ``https://*.vendor.example`` is every host below
            one, at the usual port, and not the host itself.

    Raises:
        ProgramFault: an entry is no origin.
    """
    origins: set[str] = set()
    domains: set[str] = set()
    for entry in filter(None, (each.strip() for each in text.split(","))):
        try:
            if entry.startswith(_ANY_OF):
                domains.add(_domain(entry))
            else:
                origins.add(Origin.parse(entry).text)
        except EgressRefused as refused:
            raise ProgramFault(f"{VARIABLE} holds {entry!r}: {refused}") from None

    def permits(origin: Origin) -> bool:
        if origin.text in origins:
            return True
        return origin.text == f"https://{origin.host}" and any(origin.host.endswith(f".{each}") for each in domains)

    return permits


def permits_of(config: ServerConfig, deployment: Permits) -> Permits:
    """What one server may be reached under: an operator has permitted an address by configuring it, a tenant asks the deployment's list."""
    return (lambda origin: True) if config.owner is Owner.OPERATOR else deployment


def _domain(entry: str) -> str:
    origin = Origin.parse(f"https://{entry.removeprefix(_ANY_OF)}")
    if origin.text != f"https://{origin.host}" or "." not in origin.host or origin.host[-1].isdigit():
        raise EgressRefused("a pattern is every host below a domain, such as https://*.vendor.example, without a port")
    return origin.host
