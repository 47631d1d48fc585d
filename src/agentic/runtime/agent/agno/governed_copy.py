"""A turn's own copy of the user's model: same provider, none of the settings that repeat a request behind our back.

The user's object is never changed; it may be shared by many runs.
"""

from collections.abc import Mapping
from functools import cache
from typing import Any, cast

from agno.models.base import Model

from agentic.runtime.agent.agno.answer_only import is_anthropic
from agentic.runtime.agent.agno.model import GovernedModel, TurnState
from agentic.runtime.agent.agno.redacted_log import LOG


def governed(model: Model, turn: TurnState, clients: Mapping[str, Any]) -> Model:
    """A copy of ``model`` whose requests go through the turn's hooks, over connections an earlier copy opened."""
    LOG.learn(model)
    mixed = _mixed(type(model))
    copy: Any = mixed.__new__(mixed)
    copy.__dict__.update(model.__dict__)
    copy.turn = turn
    _send_once(copy)
    _keep_history_here(copy)
    copy.__dict__.update(clients)
    return cast(Model, copy)


@cache
def _mixed(kind: type[Model]) -> type[Model]:
    return cast(type[Model], type(kind.__name__, (GovernedModel, kind), {"__module__": kind.__module__}))


def _send_once(copy: Any) -> None:
    """One request an attempt: the run owns retries, and a hidden one would be neither counted nor capped (M1)."""
    copy.retries = 0
    copy.retry_with_guidance = False
    copy.cache_response = False
    if hasattr(copy, "max_retries"):
        copy.max_retries = 0
    params = getattr(copy, "client_params", None)
    if (isinstance(params, dict) and "max_retries" in params) or is_anthropic(copy):
        copy.client_params = {**(params or {}), "max_retries": 0}
    client = getattr(copy, "async_client", None)
    if client is not None and getattr(client, "max_retries", None) and hasattr(client, "with_options"):
        copy.async_client = client.with_options(max_retries=0)


def _keep_history_here(copy: Any) -> None:
    """Responses models replay our log; a chain kept by the provider would outlive edits and expire (ADR 0003)."""
    if hasattr(copy, "use_previous_response_id"):
        copy.store = False
        copy.use_previous_response_id = False
        copy.background = None
