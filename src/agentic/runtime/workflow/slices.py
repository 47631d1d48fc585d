"""How long a wait lasts before the row is read again: pure."""

import math
from typing import Any, Final

from pydantic import BaseModel, ConfigDict

SLICES_S: Final = (60, 5 * 60, 30 * 60)
LAST_SLICE_S: Final = 6 * 3600


class Look(BaseModel):
    """What a look at the row found; recorded by the function server, so fields are only ever added, with a default."""

    model_config = ConfigDict(frozen=True)

    over: bool
    """There is nothing to wait for any more."""
    within_s: float
    """Seconds after which there will be nothing to wait for, whatever happens."""
    seen: dict[str, Any] = {}


def slice_s(number: int, within_s: float) -> int:
    """How long the wait of this number lasts, in whole seconds, as the SDK takes them."""
    longest = SLICES_S[number] if number < len(SLICES_S) else LAST_SLICE_S
    return max(1, min(longest, math.ceil(within_s)))
