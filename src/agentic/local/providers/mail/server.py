"""Serves the provider on a free loopback port, inside the current process."""

from agentic.local.providers.loopback_server import LoopbackServer
from agentic.local.providers.mail.app import DEFAULT_ADDRESS, mail_app
from agentic.local.providers.mail.store import MailStore


class MailServer(LoopbackServer):
    """``async with MailServer(...) as server`` answers at ``server.url`` until the block ends.

    Args:
        store: what the provider works on.
        api_key: the bearer key it expects.
        grant_id: the mailbox.
        address: that mailbox's own address.
        port: on 127.0.0.1; 0 takes a free one.

    Raises:
        OSError: on entering, when the port is taken.
    """

    def __init__(
        self, *, store: MailStore, api_key: str, grant_id: str, address: str = DEFAULT_ADDRESS, port: int = 0
    ) -> None:
        self.store = store
        app = mail_app(store, api_key, grant_id, address=address)
        super().__init__(app, name="local mail provider", port=port, release=store.release_all)
