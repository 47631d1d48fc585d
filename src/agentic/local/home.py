"""The project-local folder of one machine: embedded Postgres, the identity that commands act under, the secret that signs local tokens.

With ``DATABASE_URL`` set, the database is that one and the embedded server stays off.
"""

import base64
import json
import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID, uuid4

from agentic.contract.errors import ProgramFault
from agentic.local.postgres import EmbeddedPostgres, bootstrap_supabase
from agentic.services.mcp.locating import FILE as MCP_SERVERS
from agentic.services.mcp.locating import VARIABLE as MCP_SERVERS_VARIABLE

DEFAULT_FOLDER = Path(".agentic")
DATABASE_URL = "DATABASE_URL"
SERVER_HOMES = "mcp_homes"
_OURS = ("postgres", "identity.json", "token-secret", "vault-key", "mailbox.jsonl", "logs", MCP_SERVERS, SERVER_HOMES)
"""What stands in such a folder; drafts begin with the same names, a dot before them or not."""


class FolderUnusable(ProgramFault):
    """The folder cannot be one of ours; nothing was written."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Identity:
    """Who local commands act as."""

    organization_id: UUID
    user_id: UUID


class Home:
    """The folder, made on first use and readable by its owner alone."""

    def __init__(self, folder: Path = DEFAULT_FOLDER) -> None:
        self.folder = folder

    def check(self) -> None:
        """Find out whether the folder can be one of ours. Writes nothing.

        Raises:
            FolderUnusable: it is a file, its name is impossible, or it holds nothing but somebody else's files.
        """
        try:
            nearest = next(path for path in (self.folder, *self.folder.absolute().parents) if path.exists())
            if not nearest.is_dir():
                raise FolderUnusable(
                    f"{nearest} is a file, and a folder is needed at {self.folder}; name another one with --folder"
                )
            found = [entry.name for entry in nearest.iterdir()] if nearest == self.folder else []
        except (OSError, ValueError) as error:  # such as a name that is too long
            reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
            raise FolderUnusable(
                f"the folder {_shortened(self.folder)} cannot be used ({reason}); name another one with --folder"
            ) from error
        if found and not any(name.lstrip(".").startswith(_OURS) for name in found):
            raise FolderUnusable(
                f"the folder {self.folder} holds files of somebody else and none of agentic's; it was left untouched. "
                "Name a new or an empty one with --folder"
            )

    @contextmanager
    def database(self) -> Iterator[str]:
        """A database URL for the length of the block: ``DATABASE_URL``, or the embedded server, started or joined.

        Raises:
            EmbeddedPostgresError: the server cannot run here; the message names the remedy.
            FolderUnusable: the folder cannot be one of ours.
        """
        self.check()
        server = self.embedded()
        if server is None:
            yield os.environ[DATABASE_URL]
            return
        with server as url:
            bootstrap_supabase(url)
            yield url

    def embedded(self) -> EmbeddedPostgres | None:
        """The embedded server of this folder, another object each time; ``None`` where ``DATABASE_URL`` names a database."""
        return None if os.environ.get(DATABASE_URL) else EmbeddedPostgres(self.folder / "postgres")

    def identity(self) -> Identity:
        """The organization and person of this folder, made up once and kept."""
        text = self._kept(
            "identity.json", lambda: json.dumps({"organization_id": str(uuid4()), "user_id": str(uuid4())})
        )
        try:
            read = json.loads(text)
            return Identity(organization_id=UUID(read["organization_id"]), user_id=UUID(read["user_id"]))
        except (ValueError, KeyError, TypeError) as error:
            raise ProgramFault(
                f"{self.folder / 'identity.json'} cannot be read; delete it and a new identity is made"
            ) from error

    def token_secret(self) -> str:
        """The secret that signs tokens of the local API, made up once and kept."""
        return self._kept("token-secret", lambda: secrets.token_urlsafe(48)).strip()

    def vault_key(self) -> str:
        """The key that seals connections on this machine where the environment names none, made up once and kept."""
        return self._kept("vault-key", lambda: base64.b64encode(secrets.token_bytes(32)).decode()).strip()

    @property
    def mcp_servers(self) -> Path:
        """The file of the deployment's stdio servers: the one that ``AGENTIC_MCP_SERVERS`` names, or this folder's. It may be missing."""
        return Path(os.environ.get(MCP_SERVERS_VARIABLE, "").strip() or self.folder / MCP_SERVERS)

    def name_mcp_servers(self) -> None:
        """Have this process, and the workers it starts, read this folder's file of stdio servers, now and when it changes.

        Nothing happens where the environment names a file, or where there is no such folder.
        """
        if not os.environ.get(MCP_SERVERS_VARIABLE, "").strip() and self.folder.is_dir():
            # what stands there, whatever it is, is its reader's to judge
            if not os.path.lexists(self.folder / MCP_SERVERS):
                self._kept(MCP_SERVERS, lambda: '{"mcpServers": {}}\n')
            os.environ[MCP_SERVERS_VARIABLE] = str((self.folder / MCP_SERVERS).absolute())

    def server_home(self, server_id: str) -> Path:
        """The folder that is the HOME of one stdio server, kept, so that what it downloads is there the next time. Not made here."""
        return (self.folder / SERVER_HOMES / server_id).absolute()

    def _kept(self, name: str, make: Callable[[], str]) -> str:
        self.check()
        path = self.folder / name
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            return path.read_text()
        except FileNotFoundError:
            pass
        except OSError as error:
            raise ProgramFault(
                f"{path} cannot be read ({error.strerror}); check the folder's owner and rights"
            ) from error
        draft = path.with_name(f"{name}.{os.getpid()}.{secrets.token_hex(4)}")
        descriptor = os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
        with os.fdopen(descriptor, "w") as file:
            file.write(make())
        try:
            os.link(draft, path)  # two processes at once: the first to link wins, both read one value
        except FileExistsError:
            pass
        finally:
            draft.unlink()
        return path.read_text()


def _shortened(path: Path) -> str:
    text = str(path)
    return text if len(text) <= 80 else f"{text[:60]}…{text[-15:]}"
