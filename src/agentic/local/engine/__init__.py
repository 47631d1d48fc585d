"""A one-machine stand-in for an Inngest server: same protocol, same function objects, state in Postgres."""

from agentic.local.engine.engine import FunctionEngine
from agentic.local.engine.errors import (
    AppUnreachable,
    EngineError,
    NotLoopback,
    PortUnavailable,
    RegisteredElsewhere,
    RegistrationRefused,
)
from agentic.local.engine.inspection import RunView, StepView

__all__ = [
    "AppUnreachable",
    "EngineError",
    "FunctionEngine",
    "NotLoopback",
    "PortUnavailable",
    "RegisteredElsewhere",
    "RegistrationRefused",
    "RunView",
    "StepView",
]
