"""What a handler raises when it cannot return a value. Neutral: no vendor's class, no result type.

    HandlerError
    ├── DefiniteRefusal             the other side said no, or was never reached: surely no effect
    │   ├── RetryableUpstreamError      time mends it: throttled, connection refused, name server busy
    │   ├── UpstreamUnavailableError    it does not come back by waiting: certificate refused, no such host
    │   ├── ConnectionUnusable          a person must connect the account again
    │   ├── ToolGone                    the tool's server offers it no more, or another one under its name
    │   └── EgressRefused               this process may not talk to that address
    └── OutcomeUnknown              bytes left and no definite answer came: the effect may have happened

Which of them a status means is the vendor handler's knowledge; what becomes of the claim is the invoker's (ADR 0009), and whether the
same call may come again is the table's of outcomes. A raise of any other class counts as unknown once the watermark is set.
"""

from typing import ClassVar

from agentic.contract.errors import AgenticError, ProgramFault
from agentic.contract.results import ErrorCode
from agentic.services.tools.outcomes import PIPELINE_CODES, leaves_no_claim, mends_by_waiting


class HandlerError(AgenticError):
    """Root of what handlers raise. Texts hold neither a header, a body, a path nor a query (B2)."""

    costs_nothing: ClassVar[bool] = False
    """A metered read that raised this surely was not charged, so what was held for it is given back (ADR 0029)."""


class DefiniteRefusal(HandlerError):
    """The effect surely did not happen. The only way for a handler to end a call normally without a value.

    Args:
        message: what was refused and by whom, in words fit for an operator.
        code: the stable code the caller reads; whether the claim is released or the answer remembered follows from it (J6).
        retry_after_s: seconds the other side asked to wait; ``None`` when it did not say.
        external_text: what the remote wrote; travels as labelled data, never as narration (B3).

    Raises:
        ProgramFault: the code is one that only the invoker may conclude, such as ``denied``.
    """

    def __init__(
        self,
        message: str,
        *,
        code: ErrorCode,
        retry_after_s: float | None = None,
        external_text: str | None = None,
    ) -> None:
        if code in PIPELINE_CODES:
            raise ProgramFault(f"a handler cannot answer '{code}'; that is the invoker's to conclude")
        super().__init__(message)
        self.code = code
        self.retry_after_s = retry_after_s
        self.external_text = external_text

    @property
    def retryable(self) -> bool:
        """The same call may succeed later without anybody changing anything."""
        return mends_by_waiting(self.code)

    @property
    def leaves_no_claim(self) -> bool:
        """The claim is released, for the same call may succeed once time has passed or a person has acted (J6)."""
        return leaves_no_claim(self.code)


class RetryableUpstreamError(DefiniteRefusal):
    """No effect, and waiting helps. The claim is released (J6)."""

    def __init__(self, message: str, *, retry_after_s: float | None = None, external_text: str | None = None) -> None:
        super().__init__(
            message,
            code=ErrorCode.RETRYABLE_UPSTREAM,
            retry_after_s=retry_after_s,
            external_text=external_text,
        )


class UpstreamUnavailableError(DefiniteRefusal):
    """No effect, and waiting alone does not help: somebody must repair the other side or our configuration."""

    def __init__(self, message: str, *, external_text: str | None = None) -> None:
        super().__init__(message, code=ErrorCode.UNAVAILABLE, external_text=external_text)


class ConnectionUnusable(DefiniteRefusal):
    """No effect: the account's credential is no longer accepted, or the account was disconnected. The claim is released (J6).

    Args:
        message: for an operator.
        code: ``connection_expired``, ``connection_revoked`` or ``connection_required``.
    """

    def __init__(self, message: str, *, code: ErrorCode = ErrorCode.CONNECTION_EXPIRED) -> None:
        super().__init__(message, code=code)


class ToolGone(DefiniteRefusal):
    """The server of a tool does not offer it any more as the run was shown it. Nothing was sent.

    Args:
        message: for an operator.
        changed: there is a tool of its name, declared in another way; the caller then reads what the invoker says of a changed tool.
    """

    def __init__(self, message: str, *, changed: bool) -> None:
        super().__init__(message, code=ErrorCode.WITHDRAWN)
        if changed:
            self.code = ErrorCode.TOOL_CHANGED


class EgressRefused(DefiniteRefusal):
    """The target lies outside what this client was built for. Nothing was sent."""

    def __init__(self, message: str) -> None:
        super().__init__(message, code=ErrorCode.UNAVAILABLE)


class OutcomeUnknown(HandlerError):
    """The request may have been received and no definite answer came back (J3).

    Args:
        message: what was sent where and how the wait for its answer ended.
        status: the HTTP status, when one arrived before the answer broke off or when the caller reads it as indefinite (504).
        external_text: what the remote wrote of it, for whoever has to find out; never shown to a model.
    """

    def __init__(self, message: str, *, status: int | None = None, external_text: str | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.external_text = external_text
