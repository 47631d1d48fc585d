"""What a vendor is asked about a connection, what its answer means, and that asking changes nothing."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING
from uuid import uuid4

import pytest

from agentic.contract.clock import SystemClock
from agentic.local.providers.firecrawl import Firecrawl
from agentic.local.providers.fullenrich import FullEnrichStandIn
from agentic.local.providers.hunter import Hunter
from agentic.local.providers.mail import MailServer, MailStore
from agentic.local.providers.stand_in import Answer, Lost, StandInServer
from agentic.services.connections.probing import Probed, probe
from agentic.services.connections.secrets import ApiKey
from agentic.services.tools.connections import Account

if TYPE_CHECKING:
    from tests.integration.connections.conftest import VaultStage

KEY, GRANT = "api-key-value-of-ada", "11111111-1111-4111-8111-111111111111"
PATHS = {
    "hunter": "/v2/account",
    "firecrawl": "/v2/team/credit-usage",
    "fullenrich": "/api/v2/account/keys/verify",
    "nylas": f"/v3/grants/{GRANT}",
}


class Vendors:
    """Every vendor that documents a question."""

    def __init__(self) -> None:
        self.stand_ins = {"hunter": Hunter(KEY), "firecrawl": Firecrawl(KEY), "fullenrich": FullEnrichStandIn(KEY)}
        self.mail = MailStore()
        self.origins: dict[str, str] = {}


@asynccontextmanager
async def vendors() -> AsyncIterator[Vendors]:
    made = Vendors()
    async with AsyncExitStack() as stack:
        for name, stand_in in made.stand_ins.items():
            made.origins[name] = (await stack.enter_async_context(StandInServer(stand_in))).url
        mail = MailServer(store=made.mail, api_key=KEY, grant_id=GRANT)
        made.origins["nylas"] = (await stack.enter_async_context(mail)).url
        yield made


async def probed(
    stage: "VaultStage", provider: str, *, key: str = KEY, label: str = "", origins: dict[str, str], **facts: str
) -> Probed:
    made = await stage.service.add(
        stage.organization_id, provider, ApiKey(value=key), label=label or f"{provider} {uuid4()}", account=facts
    )
    before = await stage.row(made.id)
    found = await (await stage.process()).resolve(
        organization_id=stage.organization_id, provider=provider, connection_id=made.id
    )
    assert isinstance(found, Account)
    answer = await probe(found, origins=origins, clock=SystemClock())
    assert await stage.row(made.id) == before
    assert key not in repr(answer)
    return answer


@pytest.mark.parametrize("provider", sorted(PATHS))
async def test_a_key_is_accepted_or_refused_by_the_cheapest_question(stage: "VaultStage", provider: str) -> None:
    facts = {"grant_id": GRANT} if provider == "nylas" else {}
    async with vendors() as v:
        good = await probed(stage, provider, origins=v.origins, **facts)
        bad = await probed(stage, provider, key="another-key-value", origins=v.origins, **facts)
    assert (good.asked, good.accepted) == (f"GET {v.origins[provider]}{PATHS[provider]}", True)
    assert bad.accepted is False
    hunter = v.stand_ins["hunter"]
    assert isinstance(hunter, Hunter)
    assert hunter.used == 0


async def test_a_mailbox_whose_grant_ended_or_is_not_there_is_not_accepted(stage: "VaultStage") -> None:
    async with vendors() as v:
        v.mail.grant_status = "invalid"
        ended = await probed(stage, "nylas", origins=v.origins, grant_id=GRANT)
    async with vendors() as v:
        other = await probed(stage, "nylas", label="other", origins=v.origins, grant_id="another")
    assert ended.accepted is False
    assert "connected again" in ended.said
    assert other.accepted is False
    assert "404" in other.said


@pytest.mark.parametrize(
    ("provider", "answer", "accepted"),
    [
        ("hunter", Answer(status=403, json={}), None),
        ("hunter", Answer(status=429, json={}), None),
        ("firecrawl", Answer(status=403, json={}), False),
        ("fullenrich", Answer(status=500, body=b"<html>"), None),
        ("fullenrich", Lost(), None),
    ],
    ids=["hunter slows down", "hunter has nothing left", "forbidden", "down", "lost"],
)
async def test_a_busy_vendor_has_said_nothing_of_the_credential(
    stage: "VaultStage", provider: str, answer: Answer | Lost, accepted: bool | None
) -> None:
    async with vendors() as v:
        v.stand_ins[provider].then(answer)
        assert (await probed(stage, provider, origins=v.origins)).accepted is accepted


async def test_a_vendor_that_documents_no_free_question_is_not_asked(stage: "VaultStage") -> None:
    for provider in ("exa", "parallel", "courier", "nylas"):
        answer = await probed(stage, provider, origins={"nylas": "http://127.0.0.1:9"})
        assert (answer.asked, answer.accepted) == (None, None)


async def test_a_vendor_that_is_not_there_is_said_to_be_that(stage: "VaultStage") -> None:
    answer = await probed(stage, "hunter", origins={"hunter": "http://127.0.0.1:9"})
    assert (answer.asked, answer.accepted) == ("GET http://127.0.0.1:9/v2/account", None)
    assert "could not be asked" in answer.said
