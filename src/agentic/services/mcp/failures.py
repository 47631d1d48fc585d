"""How talking to a server can fail, as values: what happened, whether the request can have arrived, what may be shown of it.

Decided by what our side saw, never by a code the server wrote: it can write "connection closed" or "timed out" as well as anybody.
"""

from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from agentic.contract.errors import AgenticError
from agentic.services.tools.outcomes import AvailabilityCause


class Trouble(StrEnum):
    """What went wrong."""

    NOT_STARTED = "not_started"
    """The program could not be started."""
    EGRESS = "egress"
    """The address, or what its name leads to, is not one we may talk to."""
    CONNECT = "connect"
    """No connection, or one that ended before the handshake did."""
    CONNECT_TIMEOUT = "connect_timeout"
    HANDSHAKE = "handshake"
    """The server answered the handshake with something we cannot work with."""
    DECLINED = "declined"
    """It asked for a model's answer, for folders or for a form, was refused as everybody is, and never answered anything."""
    UNAUTHORIZED = "unauthorized"
    """It, or the token endpoint, does not accept our credential."""
    FORBIDDEN = "forbidden"
    """It knows who we are and does not let us."""
    AUTH_UNSUPPORTED = "auth_unsupported"
    """It wants a person to consent in a browser."""
    DISCONNECTED = "disconnected"
    """The connection, or the stream of this one answer, ended before the answer."""
    SESSION_EXPIRED = "session_expired"
    """It does not know our session any more; by the protocol it did not look at the request."""
    SESSION_SUSPECT = "session_suspect"
    """It answered 400 to a session that worked: some servers forget a session that way."""
    HTTP_STATUS = "http_status"
    REDIRECTED = "redirected"
    TOO_LARGE = "too_large"
    """A line, a body or an event beyond what is taken."""
    FLOODED = "flooded"
    """It asks us more than it lets us answer."""
    TIMEOUT = "timeout"
    """Our own deadline."""
    PROTOCOL = "protocol"
    """An answer that is none."""
    SERVER_ERROR = "server_error"
    """An error of the protocol's own kind, in the server's words."""


_UNAUTHORIZED: Final = frozenset({Trouble.UNAUTHORIZED, Trouble.FORBIDDEN, Trouble.AUTH_UNSUPPORTED})
_NOTHING_DONE: Final = frozenset({Trouble.SESSION_EXPIRED})


class RemoteFailure(AgenticError):
    """A request, or the opening of a session, that came to nothing.

    Attributes:
        sent: the request can have reached the server. ``False`` is a promise.
        status: of HTTP, when one came.
        external_text: the server's words; labelled data, never narration (B3).
        code: of the server's error. It can be any, so nothing about a call is decided by it.
        credential: the headers that were presented; never a part of a text.
        stderr: the end of what a child process wrote there, redacted; for operators.
    """

    def __init__(
        self,
        trouble: Trouble,
        message: str,
        *,
        sent: bool = False,
        status: int | None = None,
        external_text: str | None = None,
        code: int | None = None,
        stderr: str | None = None,
        credential: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.trouble = trouble
        self.sent = sent
        self.status = status
        self.external_text = external_text
        self.code = code
        self.stderr = stderr
        self.credential = credential or {}

    @property
    def surely_without_effect(self) -> bool:
        """Whether the request can have done nothing: it never left, or the protocol says it was not looked at."""
        return not self.sent or self.trouble in _NOTHING_DONE

    @property
    def cause(self) -> AvailabilityCause:
        """Why the tools of the server cannot be called, as far as this failure tells."""
        if self.trouble in _UNAUTHORIZED:
            return AvailabilityCause.SERVER_UNAUTHORIZED
        return AvailabilityCause.SERVER_UNREACHABLE


@dataclass(kw_only=True, slots=True)
class Trace:
    """What our own transport saw of one exchange. It outranks whatever the answer says."""

    net: Trouble | None = None
    status: int | None = None
    sent: bool = False
    """A byte of the request may have left."""
    had_session: bool = False
    """The request named a session the server gave us."""
    interactive: bool = False
    """A 401 to a request without a credential pointed to a browser's consent."""
    resumes: int = 0
    ended: bool = False
    """The stream of the answer was read to its end; an answer in it would have stopped the reading."""
    abandoned: bool = False
    """Nobody waits for the answer any more."""
    credential: Mapping[str, str] = field(default_factory=dict, repr=False)
    """The headers of the credential that was presented."""


TRACE: ContextVar[Trace | None] = ContextVar("trace", default=None)
"""What a transport notes of the exchange whose task set it; the SDK carries the sender's context to an HTTP request."""


def trouble_of(trace: Trace) -> Trouble | None:
    """What the transport knows of an exchange that ended in an error; ``None`` when it saw nothing wrong."""
    if trace.net is not None:
        return trace.net
    status = trace.status
    if status is None or status < 400:
        return Trouble.DISCONNECTED if trace.ended else None
    if status == 401:
        return Trouble.AUTH_UNSUPPORTED if trace.interactive else Trouble.UNAUTHORIZED
    if status == 403:
        return Trouble.FORBIDDEN
    if status == 404 and trace.had_session:
        return Trouble.SESSION_EXPIRED
    if status == 400 and trace.had_session:
        return Trouble.SESSION_SUSPECT
    return Trouble.HTTP_STATUS
