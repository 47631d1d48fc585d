"""A mail provider on this machine, with one mailbox."""

from collections.abc import AsyncIterator

import pytest

from agentic.local.providers.mail import MailServer, MailStore
from email_stage import GRANT, KEY


@pytest.fixture
async def mail() -> AsyncIterator[MailServer]:
    async with MailServer(store=MailStore(), api_key=KEY, grant_id=GRANT) as server:
        yield server
