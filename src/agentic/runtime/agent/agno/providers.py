"""From the model a definition names to a model object: a registered one first, else agno's own ``provider:model`` string."""

import os
from collections.abc import Callable, Mapping

from agno.models.base import Model
from agno.models.utils import get_model

from agentic.contract.errors import ProgramFault

Models = Mapping[str, Callable[[], Model]]
"""Models registered with the application, by the name a definition uses; a factory is called once in an event loop."""

_PACKAGES = {
    "openai": ("openai", ("OPENAI_API_KEY",)),
    "openai-chat": ("openai", ("OPENAI_API_KEY",)),
    "openai-responses": ("openai", ("OPENAI_API_KEY",)),
    "anthropic": ("anthropic", ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN")),
    "google": ("google", ("GOOGLE_API_KEY",)),
}
"""Extra of this package and environment variables, one of which holds the key, for the tested providers."""


def keys_in_environment() -> list[str]:
    """The keys that the tested providers' models would take from the environment."""
    variables = {variable for _, listed in _PACKAGES.values() for variable in listed}
    return [key for variable in sorted(variables) if (key := os.environ.get(variable))]


def resolve(name: str, models: Models) -> Model:
    """The model a definition names.

    Raises:
        ProgramFault: for an unknown name, a provider whose package is missing, or a missing key, with what to do.
    """
    factory = models.get(name)
    if factory is not None:
        return factory()
    provider, colon, rest = name.partition(":")
    provider = provider.strip().lower()
    if not colon or not provider or not rest.strip():
        known = ", ".join(sorted(models)) or "none"
        raise ProgramFault(
            f"model {name!r} is neither registered (registered: {known}) nor of the form provider:model; "
            "write for example openai:gpt-5-mini, or register it with the application"
        )
    extra, variables = _PACKAGES.get(provider, (None, ()))
    try:
        model = get_model(name)
    except ImportError as exc:
        remedy = f"pip install 'agentic-platform[{extra}]'" if extra else f"install the package it names ({exc})"
        raise ProgramFault(f"model {name!r} needs a package that is not installed: {remedy}") from exc
    except ValueError as exc:
        raise ProgramFault(f"model {name!r} cannot be made: {exc}") from exc
    if model is None:
        raise ProgramFault(f"model {name!r} cannot be made; check its spelling")
    if provider == "google" and os.environ.get("GOOGLE_GENAI_USE_VERTEXAI", "").lower() == "true":
        return model
    if variables and not any(os.environ.get(variable) for variable in variables):
        raise ProgramFault(f"model {name!r} needs a key: set {' or '.join(variables)} in the environment")
    return model
