"""What is told of a remote tool server that could not be used: a status, a code and one of our sentences. Pure.

Never the server's words (B3), and never those of the failure either: they name addresses that a name leads to inside this network,
folders of this machine, and what a child process wrote.
"""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Final

from agentic.services.mcp.failures import RemoteFailure, Trouble

_ASK: Final = "ask whoever runs it"
_WORDS: Final[Mapping[Trouble, str]] = {
    Trouble.NOT_STARTED: "the server could not be started here; ask whoever administers this deployment",
    Trouble.EGRESS: "its address, or what its name leads to, is none that this deployment talks to; ask whoever administers it",
    Trouble.CONNECT: "there was no connection to the server; see whether it runs, and whether its name is right",
    Trouble.CONNECT_TIMEOUT: "the server did not finish the handshake in time; see whether it is up",
    Trouble.HANDSHAKE: f"what answers there does not speak the protocol as we do; check the URL, or {_ASK}",
    Trouble.DECLINED: f"the server asks for a model, folders or a form before it answers, which nobody gets here; {_ASK}",
    Trouble.UNAUTHORIZED: "the server, or the token endpoint, does not accept the credential; reconnect its connection with a good one",
    Trouble.FORBIDDEN: "the account behind the credential may not use the server; let it, at the server's own administration",
    Trouble.AUTH_UNSUPPORTED: "the server wants a person's consent in a browser; get a token or an OAuth client there and name a scheme",
    Trouble.DISCONNECTED: "the server ended the connection before it answered; try again",
    Trouble.SESSION_EXPIRED: "the server forgot the session before it answered; try again",
    Trouble.SESSION_SUSPECT: "the server refused the session before it answered; try again",
    Trouble.HTTP_STATUS: f"the server answered with an error; {_ASK}",
    Trouble.REDIRECTED: "the server sends us elsewhere, and no redirect is followed; retire it and add the address it leads to",
    Trouble.TOO_LARGE: f"the server sends more than is taken; {_ASK}",
    Trouble.FLOODED: f"the server asks more than it may; {_ASK}",
    Trouble.TIMEOUT: f"the server did not answer in time; try again, or {_ASK}",
    Trouble.PROTOCOL: f"the server answered with something that is no answer; {_ASK}",
    Trouble.SERVER_ERROR: f"the server reports an error of its own; {_ASK}",
}
_LATE: Final = frozenset({Trouble.CONNECT_TIMEOUT, Trouble.TIMEOUT})


def status_of(trouble: Trouble) -> int:
    """The status: we stand between the caller and a server that failed, or was late."""
    return HTTPStatus.GATEWAY_TIMEOUT if trouble in _LATE else HTTPStatus.BAD_GATEWAY


def code_of(trouble: Trouble) -> str:
    """The stable code, such as ``mcp_connect_timeout``; a server's row names the same word as ``reason``."""
    return f"mcp_{trouble}"


def words_of(failure: RemoteFailure) -> str:
    """What happened and what to do."""
    failed = failure.status is not None and failure.status >= HTTPStatus.BAD_REQUEST
    status = f" (status {failure.status})" if failed else ""
    return f"{_WORDS[failure.trouble]}{status}"
