"""Which vendors a command reaches: those its environment names, or the stand-ins beside ``agentic dev --stand-ins``."""

import os

from agentic.local.home import Home
from agentic.storage.connection import describe


def reach_vendors_of(home: Home, database_url: str | None = None) -> None:
    """Where the folder's services run over stand-ins, have this process reach those, as their app and workers do.

    Else a command would import the app without its accounts, or show a vendor the key of a stand-in.

    Args:
        home: the folder.
        database_url: which the command works on; over another one than the services' it reaches what its environment names.
            ``None`` for a command that needs none.
    """
    from agentic.local.dev.address import stand_ins_of

    found = stand_ins_of(home.folder, None if database_url is None else describe(database_url))
    if found:
        from agentic.services.connections.envelope import VARIABLE as VAULT_KEYS

        os.environ.update(found)
        os.environ[VAULT_KEYS] = os.environ.get(VAULT_KEYS) or home.vault_key()
