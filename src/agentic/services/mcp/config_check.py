"""Whether a server's configuration may stand, decided when it is written and not when it is dialled. Pure: no server, no vault.

All faults are named at once, each with its remedy and none with a value that could be a secret.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, assert_never
from urllib.parse import parse_qsl, urlsplit

from pydantic import ValidationError

from agentic.contract.errors import AgenticError
from agentic.services.mcp.config import (
    Authentication,
    AuthScheme,
    Classification,
    HttpEndpoint,
    Owner,
    ServerConfig,
    StdioLaunch,
)
from agentic.services.mcp.environment import BASE_NAMES
from agentic.services.mcp.naming import carriable
from agentic.services.tools.handlers.egress import Origin
from agentic.services.tools.handlers.errors import EgressRefused
from agentic.services.tools.models import IdempotencyClass, SideEffects
from agentic.services.tools.redaction import is_credential_name

MAX_SERVER_ID: Final = 24
"""Leaves a tool's own name at least 35 of the 64 characters that providers take."""
_SERVER_ID: Final = re.compile(r"[a-z][a-z0-9_]*")
_AUTH_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")
_OUR_HEADERS: Final = frozenset(
    (
        *("host", "content-length", "transfer-encoding", "connection", "content-type", "accept", "accept-encoding"),
        *("cookie", "mcp-session-id", "mcp-protocol-version", "mcp-method", "mcp-name", "last-event-id", "user-agent"),
    )
)

Permits = Callable[[Origin], bool]
"""Whether the deployment's egress allow-list lets an origin through. Which addresses its name leads to is judged again at the dial."""


class ServerRefused(AgenticError):
    """A configuration that may not stand. ``faults`` names everything that is wrong with it."""

    def __init__(self, faults: tuple[str, ...]) -> None:
        super().__init__("this MCP server cannot be configured so: " + "; ".join(faults))
        self.faults = faults


def read_server(raw: Mapping[str, Any], *, permits: Permits) -> ServerConfig:
    """Read a configuration as it was written.

    Raises:
        ServerRefused: it has the wrong shape, or breaks a rule.
    """
    try:
        config = ServerConfig.model_validate(raw)
    except ValidationError as error:
        # the place and the rule; pydantic's own text quotes what was given
        found = tuple(f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in error.errors(include_input=False))
        raise ServerRefused(found) from None
    if faults := tuple(server_faults(config, permits=permits)):
        raise ServerRefused(faults)
    return config


def server_faults(config: ServerConfig, *, permits: Permits) -> Iterator[str]:
    """Everything that is wrong with a configuration; nothing when it may stand."""
    if not _SERVER_ID.fullmatch(config.server_id) or len(config.server_id) > MAX_SERVER_ID:
        yield f"server_id is at most {MAX_SERVER_ID} of a-z, 0-9 and _, beginning with a letter"
    match config.endpoint:
        case StdioLaunch() as launch:
            yield from _launch_faults(launch, config.owner)
        case HttpEndpoint(url=url):
            yield from _url_faults("url", url, config.owner, permits)
        case _ as never:
            assert_never(never)
    yield from _scheme_faults(config)
    yield from _name_faults(config)
    yield from _token_faults(config.authentication, config.owner, permits)
    yield from classification_faults(config.classification)
    for name, said in config.per_tool.items():
        yield from classification_faults(said, name)


def classification_faults(said: Classification, remote_name: str | None = None) -> Iterator[str]:
    """What is wrong with what is said of one tool of a server, or of all that have no class of their own."""
    if remote_name is None:
        yield from _classification_faults("classification", said)
        return
    if not carriable(remote_name):
        yield f"per_tool names a tool of the server, such as find; {remote_name[:64]!a} is no name that one can have"
    yield from _classification_faults(f"per_tool {remote_name[:64]}", said)


def _scheme_faults(config: ServerConfig) -> Iterator[str]:
    auth = config.authentication
    if auth.scheme is AuthScheme.NONE and auth.credential_ref is not None:
        yield "the scheme none uses no credential; drop credential_ref or name the scheme"
    if auth.scheme is not AuthScheme.NONE and not auth.credential_ref:
        yield f"the scheme {auth.scheme} needs a credential_ref"
    on_stdio = isinstance(config.endpoint, StdioLaunch)
    if on_stdio and auth.scheme not in (AuthScheme.NONE, AuthScheme.ENV):
        yield f"the scheme {auth.scheme} is for HTTP; there is no header on a pipe, use env"
    if not on_stdio and auth.scheme is AuthScheme.ENV:
        yield "the scheme env is for stdio; a server somewhere else has no environment of ours, use bearer or header"


def _name_faults(config: ServerConfig) -> Iterator[str]:
    auth = config.authentication
    if auth.scheme not in (AuthScheme.HEADER, AuthScheme.ENV):
        if auth.name is not None:
            yield f"the scheme {auth.scheme} has no name; drop it"
        return
    if auth.name is None or not _AUTH_NAME.fullmatch(auth.name):
        yield f"the scheme {auth.scheme} needs a name of 1 to 64 letters, digits, _ or -"
        return
    if auth.scheme is AuthScheme.HEADER:
        if auth.name.lower() == "authorization":
            yield "a header scheme does not name Authorization; that is the scheme bearer"
        elif auth.name.lower() in _OUR_HEADERS:
            yield f"the header {auth.name} belongs to the protocol; name another"
    elif auth.name in BASE_NAMES:
        yield f"the variable {auth.name} is one that every child gets; name another"
    elif isinstance(config.endpoint, StdioLaunch) and auth.name in config.endpoint.variables:
        yield f"the variable {auth.name} is both a setting and the credential; keep one"


def _token_faults(auth: Authentication, owner: Owner, permits: Permits) -> Iterator[str]:
    if auth.scheme is not AuthScheme.OAUTH2_CLIENT:
        if auth.token_endpoint is not None or auth.token_scopes:
            yield "token_endpoint and token_scopes are for the scheme oauth2_client"
        return
    if auth.token_endpoint is None:
        yield "the scheme oauth2_client needs a token_endpoint; it is never taken from the server"
        return
    yield from _url_faults("token_endpoint", auth.token_endpoint, owner, permits)
    if any(not re.fullmatch(r"[\x21\x23-\x5b\x5d-\x7e]{1,256}", scope) for scope in auth.token_scopes):
        yield "a token scope is printable ASCII without blanks and quotes"


def _url_faults(which: str, url: str, owner: Owner, permits: Permits) -> Iterator[str]:
    try:
        origin = origin_of(url)
    except EgressRefused as refused:
        yield f"{which}: {refused}"
        return
    if origin.loopback and owner is not Owner.OPERATOR:
        yield f"{which} leads to this machine, which is for servers of the deployment"
    elif owner is not Owner.OPERATOR and not permits(origin):
        yield f"{which}: the egress allow-list does not let {origin.text} through"
    if any(is_credential_name(name) for name, _ in parse_qsl(urlsplit(url).query, keep_blank_values=True)):
        yield f"{which} has a credential in its query; keep it in the vault and name a scheme"


def origin_of(url: str) -> Origin:
    """Scheme, host and port of a server's address.

    Raises:
        EgressRefused: it is no such address, holds a user or password, or may not be reached.
    """
    try:
        parts = urlsplit(url)
    except ValueError:
        raise EgressRefused("the brackets of the address hold no IPv6 address") from None
    if parts.scheme not in ("http", "https") or not parts.netloc:
        raise EgressRefused("an address begins with https:// and a host, such as https://tools.vendor.example/mcp")
    if parts.fragment or not re.fullmatch(r"[\x21-\x7e]+", url):
        raise EgressRefused(
            "an address is printable ASCII without a fragment, such as https://tools.vendor.example/mcp"
        )
    return Origin.parse(f"{parts.scheme}://{parts.netloc}")


def _launch_faults(launch: StdioLaunch, owner: Owner) -> Iterator[str]:
    if owner is not Owner.OPERATOR:
        yield "a stdio server runs beside the worker, so it comes with the deployment's configuration alone; use a URL"
    if not launch.command[0].strip() or any("\0" in word for word in launch.command):
        yield "command is a program and its arguments"
    for what, folder in (("cwd", launch.cwd), ("home", launch.home)):
        if folder is not None and not folder.startswith("/"):
            yield f"{what} is an absolute path"
    for name, value in launch.variables.items():
        if not _VARIABLE.fullmatch(name) or "\0" in value:
            yield "a variable is named by letters, digits and _"
        elif name in BASE_NAMES:
            yield f"the variable {name} is one that every child gets; path and home set theirs"
        elif is_credential_name(name):
            yield f"the variable {name} reads like a credential; keep it in the vault and use the scheme env"


def _classification_faults(which: str, said: Classification) -> Iterator[str]:
    effect = said.side_effects in (SideEffects.WRITE, SideEffects.SEND)
    if effect and said.idempotency is IdempotencyClass.READ_ONLY:
        yield f"{which}: a {said.side_effects} is not read_only; say idempotent or non_idempotent"
    if not effect and said.idempotency is not IdempotencyClass.READ_ONLY:
        yield f"{which}: a tool without an effect is read_only"
    if said.idempotency is IdempotencyClass.CONDITIONAL:
        yield f"{which}: the protocol carries no key by which a server could recognise a call; say non_idempotent"
    if effect and said.parallel_safe:
        yield f"{which}: parallel_safe is for reads"
