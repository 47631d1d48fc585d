"""The pottery's side of the story: its server as the deployment has it, its life in the database, and the notebook itself."""

import sys
from collections.abc import Sequence
from typing import Any, Final
from uuid import UUID

from agentic.bootstrap import Platform
from agentic.contract.errors import NotFound
from agentic.local.demo.mcp.names import FIND, GUESTS, SERVER, WRITE
from agentic.local.home import Home
from agentic.local.mcp_server.notes import HELD, Notebook
from agentic.services.mcp.config import Classification, StdioLaunch
from agentic.services.mcp.deployment import put_launch
from agentic.services.mcp.locating import FILE
from agentic.services.mcp.records import ServerState, Standing
from agentic.services.tools.models import IdempotencyClass, Risk, SideEffects

PROGRAM: Final = ("-m", "agentic.local.mcp_server")
REQUEST_S: Final = 15.0
"""Start and handshake of the server fall into it."""
_READ: Final = Classification(
    side_effects=SideEffects.READ, risk=Risk.LOW, idempotency=IdempotencyClass.READ_ONLY, parallel_safe=True
)
_WRITE: Final = Classification(
    side_effects=SideEffects.WRITE, risk=Risk.MEDIUM, idempotency=IdempotencyClass.NON_IDEMPOTENT
)
CLASSES: Final = {name.rpartition(".")[2]: said for name, said in ((FIND, _READ), (GUESTS, _READ), (WRITE, _WRITE))}
"""What the deployment says of each tool, by the name the server gives it."""


class PotteryServer:
    """The server of one demo's folder.

    Args:
        home: has its file, and the folder of its notebook.
        organization_id: whose server it is.
    """

    def __init__(self, home: Home, organization_id: UUID) -> None:
        self.file = (home.folder / FILE).absolute()
        self._home = home.server_home(SERVER)
        self._home.mkdir(parents=True, exist_ok=True)
        self._organization_id = organization_id
        self._notebook = Notebook(self._home)
        self._before = len(self._notebook.all())

    @property
    def written(self) -> Sequence[dict[str, str]]:
        """Notes that were written since this demo began."""
        return self._notebook.all()[self._before :]

    @property
    def command(self) -> str:
        """What is started, as it is typed."""
        return f"python {' '.join(PROGRAM)}"

    def configure(self, *, hold_answers: bool) -> None:
        """Write how it is started into the folder's file.

        Args:
            hold_answers: a note is kept and its answer never given.
        """
        launch = StdioLaunch(
            command=(sys.executable, *PROGRAM), home=str(self._home), variables={HELD: "yes"} if hold_answers else {}
        )
        put_launch(self.file, SERVER, launch)

    async def add(self, platform: Platform) -> bool:
        """Add it with the class of each tool, unless an earlier demo of the folder has; whether it is new."""
        try:
            await platform.mcp.server(self._organization_id, SERVER)
        except NotFound:
            raw: dict[str, Any] = {
                "server_id": SERVER,
                "owner": "operator",
                "endpoint": {"type": "stdio"},
                "timeouts": {"request_s": REQUEST_S},
                "per_tool": {name: said.model_dump(mode="json") for name, said in CLASSES.items()},
            }
            await platform.mcp.add(self._organization_id, raw, user_id=None)
            return True
        return False

    async def verify(self, platform: Platform) -> Standing:
        """Look at what it offers.

        Raises:
            RemoteFailure: it does not start.
        """
        await platform.mcp.verify(self._organization_id, SERVER)
        return await platform.mcp.server(self._organization_id, SERVER)

    async def activate(self, platform: Platform, shown: Standing) -> Standing:
        """Approve what was shown, in the name of whoever administers the deployment."""
        offered_hash = shown.offered.catalog_hash
        if shown.server.state is ServerState.VERIFIED:
            await platform.mcp.activate(self._organization_id, SERVER, offered_hash=offered_hash, user_id=None)
        else:  # another build of this package may declare its tools otherwise
            await platform.mcp.approve(self._organization_id, SERVER, None, offered_hash=offered_hash, user_id=None)
        return await platform.mcp.server(self._organization_id, SERVER)
