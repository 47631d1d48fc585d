"""What an operator or a tenant says about one MCP server, as values. Whether it may stand is `config_check`'s to say.

Nothing in here is a secret: a credential is named by its reference, and the scheme that says what to do with it stands beside the
reference, so that a rotation can change a value and never the way we talk to a server.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Final, Literal

from pydantic import Field

from agentic.contract.values import Value
from agentic.services.mcp.environment import DEFAULT_PATH
from agentic.services.tools.models import IdempotencyClass, Risk, SideEffects

MIN_START_S: Final = 1
MAX_START_S: Final = 120


class AuthScheme(StrEnum):
    """What is done with the secret a reference leads to; a closed set."""

    NONE = "none"
    BEARER = "bearer"
    """HTTP: a token, sent as `Authorization: Bearer`."""
    HEADER = "header"
    """HTTP: a token, sent in the header that `name` names."""
    OAUTH2_CLIENT = "oauth2_client"
    """HTTP: a client's id and secret, exchanged at `token_endpoint` for a bearer token."""
    ENV = "env"
    """stdio: a token, in the child's environment under `name`."""


class Owner(StrEnum):
    """Who wrote the configuration, and so how far it may reach."""

    OPERATOR = "operator"
    """It came with the deployment; it may start processes of this machine."""
    TENANT = "tenant"
    """An organization's admin wrote it; it names a public HTTPS address and nothing else."""


class Authentication(Value):
    """How we say who we are."""

    scheme: AuthScheme = AuthScheme.NONE
    credential_ref: str | None = None
    """Where the vault keeps the secret."""
    name: str | None = None
    """Of the header or the variable."""
    token_endpoint: str | None = None
    token_scopes: tuple[str, ...] = ()


class StdioLaunch(Value):
    """A server that is started as a child process of the worker."""

    type: Literal["stdio"] = "stdio"
    command: tuple[str, ...] = Field(min_length=1)
    """Program and arguments, handed over as they are; no shell reads them, and no secret stands in them."""
    cwd: str | None = None
    home: str | None = None
    """An existing folder for the child's HOME; `None` for an empty one of the session's own, gone with it."""
    path: str = DEFAULT_PATH
    variables: Mapping[str, str] = Field(default_factory=dict)
    start_s: float | None = Field(default=None, ge=MIN_START_S, le=MAX_START_S)
    """From the start of the process to the end of the handshake, in place of the server's ``connect_s``; `None` leaves it to that."""


class HttpEndpoint(Value):
    """A server somewhere else, reached over streamable HTTP."""

    type: Literal["http"] = "http"
    url: str


Endpoint = Annotated[StdioLaunch | HttpEndpoint, Field(discriminator="type")]


class Timeouts(Value):
    """Three waits that have nothing to do with one another, each in seconds."""

    connect_s: float = Field(default=10, gt=0, le=120)
    """From the start of the process, or the first byte, to the end of the handshake."""
    request_s: float = Field(default=30, gt=0, le=120)
    """Of one request; a call also ends with its own deadline."""
    idle_s: float = Field(default=900, gt=0)
    """How long a connection nobody uses is kept."""


class Classification(Value):
    """What an operator says a tool does. Silence is the most restrictive there is: a server never classifies itself (T4)."""

    side_effects: SideEffects = SideEffects.SEND
    risk: Risk = Risk.HIGH
    idempotency: IdempotencyClass = IdempotencyClass.NON_IDEMPOTENT
    parallel_safe: bool = False


class ServerConfig(Value):
    """One MCP server.

    Raises:
        pydantic.ValidationError: for a field of the wrong shape; rules across fields are `config_check.server_faults`.
    """

    server_id: str
    """The word its tools carry in their names."""
    owner: Owner = Owner.TENANT
    endpoint: Endpoint
    authentication: Authentication = Authentication()
    timeouts: Timeouts = Timeouts()
    classification: Classification = Classification()
    """Of every tool that `per_tool` does not name."""
    per_tool: Mapping[str, Classification] = Field(default_factory=dict)
    """By the name the server gives the tool."""
    max_output_bytes: int | None = Field(default=None, ge=2, le=32 * 1024)

    @property
    def opens_within_s(self) -> float:
        """How long a session may take from the start of the process, or the first byte, to the end of the handshake."""
        endpoint = self.endpoint
        said = endpoint.start_s if isinstance(endpoint, StdioLaunch) else None
        return self.timeouts.connect_s if said is None else said

    def classified(self, remote_name: str) -> Classification:
        """What the operator says of one tool."""
        return self.per_tool.get(remote_name, self.classification)
