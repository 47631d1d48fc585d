"""How a worker runs, read from its environment; all of it has defaults fit for production."""

import os
from collections.abc import Mapping
from typing import Self

from pydantic import Field, ValidationError

from agentic.contract.errors import ProgramFault
from agentic.contract.values import Value
from agentic.functions.serve import APP_ID
from agentic.runtime.agent.timings import Timings
from agentic.services.tools.default_invoker import MIN_PLATFORM_OUTPUT_BYTES
from agentic.services.tools.models import MAX_OUTPUT_BYTES

VARIABLE = "AGENTIC_WORKER_SETTINGS"


class WorkerSettings(Value):
    """Settings of one worker.

    Attributes:
        app_id: under which the function server knows the app; workers of one app share it.
        timings: the durations runs are led by.
        claim_grace_s: how long a claim outlives its call's timeout, in seconds.
        max_output_bytes: how much of a tool's answer a model reads at most.
        drain_s: how long a stopping worker waits for the call in hand, in seconds.
        port: on the loopback address; 0 takes a free one. Workers of one app that name the same port share it, and the function
            server needs to know one address only.
        ends_with_parent: stop when standard input closes, which it does when the starting process is gone.
    """

    app_id: str = APP_ID
    timings: Timings = Timings()
    claim_grace_s: float = Field(default=30, gt=0)
    max_output_bytes: int = Field(default=MAX_OUTPUT_BYTES, ge=MIN_PLATFORM_OUTPUT_BYTES, le=MAX_OUTPUT_BYTES)
    drain_s: float = Field(default=150, gt=0)
    port: int = Field(default=0, ge=0, le=65535)
    ends_with_parent: bool = False

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> Self:
        """The settings this process was started with.

        Raises:
            ProgramFault: the variable holds something else.
        """
        text = environment.get(VARIABLE)
        if text is None:
            return cls()
        try:
            return cls.model_validate_json(text)
        except ValidationError as error:
            faults = "; ".join(
                f"{'.'.join(map(str, fault['loc'])) or 'JSON'}: {fault['msg']}" for fault in error.errors()
            )
            raise ProgramFault(
                f"{VARIABLE} cannot be read ({faults}); correct it, or unset it for the defaults"
            ) from None
