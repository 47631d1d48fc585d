"""Every vendor's stand-in beside ``agentic dev``, with the keys and addresses that an app reads from its environment.

They listen on the loopback address. What is set replaces what was set, so that no key of a real account is used by mistake, and none
reaches a vendor.
"""

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from decimal import Decimal
from types import MappingProxyType
from urllib.parse import urlsplit
from uuid import UUID

from agentic.bootstrap import Platform
from agentic.contract.errors import ProgramFault
from agentic.local.providers.exa import Exa
from agentic.local.providers.firecrawl import Firecrawl
from agentic.local.providers.fullenrich import FullEnrichStandIn
from agentic.local.providers.fullenrich.reporting import FullEnrichKnobs
from agentic.local.providers.hunter import Hunter
from agentic.local.providers.knobs import PATH, AnswerKnobs, Knobs, with_knobs
from agentic.local.providers.loopback_server import LoopbackServer
from agentic.local.providers.mail import MailStore, mail_app
from agentic.local.providers.mail.app import DEFAULT_ADDRESS
from agentic.local.providers.mail.knobs import MailKnobs
from agentic.local.providers.parallel import Parallel
from agentic.local.providers.stand_in import StandIn
from agentic.services.connections.envelope import VARIABLE as VAULT_KEYS
from agentic.services.connections.models import ConnectionState
from agentic.services.connections.secrets import ApiKey
from agentic.services.provider_jobs.fullenrich.account import API_ORIGIN
from agentic.services.tools.handlers.email import NYLAS

GRANT_ID = "00000000-0000-4000-8000-00000000face"
REPORTED_AFTER_S = 5.0
"""Seconds after which a batch of FullEnrich ends by itself."""
_LABEL = "stand-in mailbox"
_VENDORS = ("exa", "parallel", "firecrawl", "hunter", "fullenrich", NYLAS)
_EVENTS = "/api/v1/agentic/webhooks/nylas"
_PRICES = (("Firecrawl", "0.005"), ("Hunter", "0.025"), ("fullenrich", "0.05"))


@dataclass(frozen=True, kw_only=True, slots=True)
class StandIns:
    """Stand-ins that serve.

    Attributes:
        environment: what an app reads: keys, addresses and our own address.
        addresses: of each vendor.
    """

    environment: Mapping[str, str]
    addresses: Mapping[str, str]

    def announced(self) -> dict[str, str]:
        """What whoever joins has to read too; the key of the vault stands in the folder."""
        return {name: value for name, value in self.environment.items() if name != VAULT_KEYS}

    def lines(self) -> Sequence[str]:
        """What a person is told of them."""
        told = [
            f"{name} is stood in for at {url} ({_origin_of(name)}, {_secret_of(name)})"
            for name, url in self.addresses.items()
        ]
        return [*told, f"each takes orders at {PATH}, see docs/stand-ins.md; no vendor is reached"]


@asynccontextmanager
async def stand_ins(
    *, api: str, vault_key: str, earlier: Mapping[str, str] = MappingProxyType({})
) -> AsyncIterator[StandIns]:
    """Serve all of them until the block ends; their environment is this process's and that of those it starts.

    Args:
        api: our own address, which reports and events are sent to.
        vault_key: seals connections where ``AGENTIC_VAULT_KEYS`` is not set.
        earlier: the environment of services that were killed. Their ports are taken again where they are free, because workers that
            joined those by hand still call there.
    """
    fullenrich, mail = FullEnrichStandIn(_key("fullenrich")), MailStore()
    reports = FullEnrichKnobs(fullenrich, after_s=REPORTED_AFTER_S)
    vendors: list[StandIn] = [
        Exa(_key("exa")),
        Parallel(_key("parallel")),
        Firecrawl(_key("firecrawl")),
        Hunter(_key("hunter")),
    ]
    async with AsyncExitStack() as open_:
        ports = {name: urlsplit(earlier.get(_origin_of(name), "")).port or 0 for name in _VENDORS}
        addresses = {
            vendor.name: await _served(open_, vendor.name, ports[vendor.name], vendor, AnswerKnobs(vendor))
            for vendor in vendors
        }
        addresses["fullenrich"] = await _served(open_, "fullenrich", ports["fullenrich"], fullenrich, reports)
        knobs = MailKnobs(
            mail, grant_id=GRANT_ID, address=DEFAULT_ADDRESS, secret=_webhook_secret(), events_to=f"{api}{_EVENTS}"
        )
        addresses[NYLAS] = await _served(open_, NYLAS, ports[NYLAS], mail_app(mail, _key(NYLAS), GRANT_ID), knobs)
        environment = {
            **{_origin_of(name): url for name, url in addresses.items()},
            **{_secret_of(name): _key(name) for name in addresses if name != NYLAS},
            "NYLAS_WEBHOOK_SECRET": _webhook_secret(),
            API_ORIGIN: api,
            VAULT_KEYS: os.environ.get(VAULT_KEYS) or vault_key,
        }
        os.environ.update(environment)
        reporting = asyncio.create_task(reports.run(), name="reports of fullenrich")
        try:
            yield StandIns(environment=environment, addresses=addresses)
        finally:
            reporting.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await reporting


async def furnish(platform: Platform, organization_id: UUID, user_id: UUID) -> None:
    """Give the organization what its calls need: a connected mailbox, and a price for each credit that has none."""
    service = platform.connections
    mailbox = next(
        (
            one
            for one in await service.list(organization_id)
            if (one.binding.provider, one.label) == (NYLAS, _LABEL) and one.state is not ConnectionState.REVOKED
        ),
        None,
    )
    secret = ApiKey(value=_key(NYLAS))
    if mailbox is None:
        account = {"grant_id": GRANT_ID, "email": DEFAULT_ADDRESS}
        await service.add(organization_id, NYLAS, secret, label=_LABEL, account=account, created_by=user_id)
    elif not (await service.check(organization_id, mailbox.id)).usable:
        await service.reconnect(organization_id, mailbox.id, secret)
    known = {(price.provider, price.unit) for price in await platform.usage.prices(organization_id)}
    for provider, price in _PRICES:
        if (provider, "credit") not in known:
            await platform.usage.set_price(
                organization_id=organization_id,
                provider=provider,
                item="*",
                unit="credit",
                unit_price=Decimal(price),
                user_id=user_id,
            )


async def _served(open_: AsyncExitStack, name: str, port: int, app: object, knobs: Knobs) -> str:
    release = app.release_all if isinstance(app, StandIn) else None
    stood = with_knobs(app, knobs)  # type: ignore[arg-type]
    if port:
        with contextlib.suppress(OSError):  # somebody else has it by now, so a free one is taken
            taken = LoopbackServer(stood, name=f"local {name}", port=port, release=release, grace_s=1)
            return (await open_.enter_async_context(taken)).url
    try:
        free = LoopbackServer(stood, name=f"local {name}", release=release, grace_s=1)
        return (await open_.enter_async_context(free)).url
    except OSError as error:
        raise ProgramFault(f"the stand-in of {name} cannot listen on this machine ({error.strerror})") from error


def _origin_of(name: str) -> str:
    return f"{name.upper()}_ORIGIN"


def _key(name: str) -> str:
    return f"stand-in-key-of-{name}"


def _webhook_secret() -> str:
    return "stand-in-webhook-secret"


def _secret_of(name: str) -> str:
    return f"{name.upper()}_API_KEY" if name != NYLAS else f"the connection '{_LABEL}'"
