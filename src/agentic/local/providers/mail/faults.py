"""Failures a test or a demo orders in advance, one per request, in the order they were ordered."""

import asyncio
from dataclasses import dataclass, field

DEFAULT_TYPES = {
    400: "invalid_request_error",
    401: "unauthorized",
    403: "insufficient_scopes",
    404: "not_found_error",
    423: "api.resource_blocked",
    429: "rate_limit_error",
    500: "api.internal_error",
    504: "provider_error",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Fault:
    """An error answer to one request.

    Attributes:
        status: of the answer.
        type: the vendor's error type; empty uses the usual one of the status.
        retry_after: seconds in ``Retry-After``; ``None`` leaves the header out.
        after_accept: the message is stored first, so the error hides an effect (what a 504 may do).
        remembered: kept under the request's key and replayed, as the vendor documents for errors too.
    """

    status: int
    type: str = ""
    retry_after: int | None = None
    after_accept: bool = False
    remembered: bool = True

    @property
    def error_type(self) -> str:
        """The type the answer carries."""
        return self.type or DEFAULT_TYPES.get(self.status, "api.internal_error")


@dataclass(frozen=True, kw_only=True, slots=True)
class Lost:
    """The request is served as usual and the line breaks in the middle of its answer."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Hold:
    """A send that stands still until ``release`` is set.

    Attributes:
        after_accept: ``True``: the message is stored and its answer remembered, but withheld. ``False``: nothing happened yet,
            so a second request with the same key meets one that is still running.
        reached: set when a request stands here.
        release: set it to let the request go on.
    """

    after_accept: bool
    reached: asyncio.Event = field(default_factory=asyncio.Event)
    release: asyncio.Event = field(default_factory=asyncio.Event)

    async def stand(self) -> None:
        """Wait here."""
        self.reached.set()
        await self.release.wait()
