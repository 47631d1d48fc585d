"""What the embedded engine can tell a person: one sentence each, with the remedy in it.

All are `EngineError`, so the command line can print the message and leave. Errors of the functions it runs never come
this way; those are recorded on the run.
"""

from __future__ import annotations

from agentic.contract.errors import AgenticError


class EngineError(AgenticError):
    """The embedded engine cannot do what was asked of it; the message says why and what to do."""


class PortUnavailable(EngineError):
    """The engine's port cannot be bound."""

    def __init__(self, *, host: str, port: int, reason: str) -> None:
        self.host = host
        self.port = port
        self.reason = reason
        super().__init__(
            f"The function engine cannot listen on {host}:{port} ({reason}): stop the program that holds the port, "
            "or start the engine with port 0 to get a free one."
        )


class NotLoopback(EngineError):
    """An address outside this machine was named, where only loopback is served or called."""

    def __init__(self, *, what: str, address: str) -> None:
        self.address = address
        super().__init__(
            f"{what} is {address}, but the embedded engine works on this machine only: use an address on 127.0.0.1, "
            "or set INNGEST_DEV to an Inngest server that can reach it."
        )


class AppUnreachable(EngineError):
    """The app to register did not answer, or did not answer as an Inngest app does."""

    def __init__(self, *, app_url: str, reason: str) -> None:
        self.app_url = app_url
        super().__init__(
            f"The function engine cannot register the app at {app_url} ({reason}): "
            "start the app first, and give the full address of its serve route, which ends in /api/inngest."
        )


class RegisteredElsewhere(EngineError):
    """The app answered, but sent its function list to another server."""

    def __init__(self, *, app_url: str, engine_url: str) -> None:
        self.app_url = app_url
        super().__init__(
            f"The app at {app_url} registered with another server than this engine: "
            f"start it with INNGEST_DEV={engine_url}."
        )


class RegistrationRefused(EngineError):
    """The function list asks for something this engine does not do, or is not one."""


class ExpressionError(EngineError):
    """An expression cannot be read."""

    def __init__(self, *, expression: str, reason: str) -> None:
        self.expression = expression
        super().__init__(
            f"The embedded engine cannot read the expression {expression!r} ({reason}): write CEL over event and async, "
            "such as event.data.id == async.data.id."
        )


class CronError(EngineError):
    """A cron expression cannot be read or never fires."""

    def __init__(self, *, expression: str, reason: str) -> None:
        self.expression = expression
        super().__init__(
            f"The cron expression {expression!r} cannot be used ({reason}): write five fields, "
            "minute hour day-of-month month day-of-week, with an optional TZ=Area/City in front."
        )
