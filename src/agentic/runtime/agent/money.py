"""When money ends a run: decided before a segment, and at the checkpoint before each model request (M2, D4). Pure.

Each answer is the end of the run as an error that names the amounts; nothing is spent between the answer and the end.
"""

from shlex import quote
from typing import Final

from agentic.contract.errors import RunEnded
from agentic.services.runs.models import Counters, LedRun, Spending, Unpriced

EXHAUSTED: Final = "budget_exhausted"
"""The tree of the run has spent what its ceiling allows."""
DAY_EXHAUSTED: Final = "budget_exhausted_day"
"""The organization has spent what it may spend in one day (UTC)."""
UNPRICED: Final = "model_unpriced"
"""The run's money is bounded, and a model request of its tree cannot be counted."""


def before_segment(led: LedRun) -> RunEnded | None:
    """Why a run that was just taken must not go on, if money says so."""
    if led.unpriced is not None:
        return unpriced(led.unpriced)
    if led.tree is not None and led.tree.exhausted:
        return _exhausted(EXHAUSTED, "the run and its children", led.tree)
    if led.day is not None and led.day.exhausted:
        return _exhausted(DAY_EXHAUSTED, "the organization today (UTC)", led.day)
    return None


def before_request(counters: Counters, uncounted: Unpriced | None) -> RunEnded | None:
    """Why the model must not be asked again, if money says so.

    Args:
        counters: after the append of this checkpoint.
        uncounted: a request that an append of this segment found without a price.
    """
    if uncounted is not None:
        return unpriced(uncounted)
    if counters.tree is not None and counters.tree.exhausted:
        return _exhausted(EXHAUSTED, "the run and its children", counters.tree)
    return None


def unpriced(request: Unpriced) -> RunEnded:
    """The end of a run that cannot be counted, with the commands that help the next one."""
    model = f"{quote(request.provider)} {quote(request.item)}"
    return RunEnded(
        status="failed",
        code=UNPRICED,
        message=f"the run has a ceiling of money, and a request to the model {request.item} of {request.provider} cannot be counted: it "
        f"reported no cost, and no price covers what it used; run 'agentic prices set {model} input_token AMOUNT' and "
        f"'agentic prices set {model} output_token AMOUNT' and start the work again",
    )


def _exhausted(code: str, who: str, spending: Spending) -> RunEnded:
    held = f" and hold {spending.held} for calls that have not ended" if spending.held else ""
    return RunEnded(
        status="succeeded",
        code=code,
        message=f"{who} spent {spending.spent} USD{held}; the limit is {spending.limit} USD",
    )
