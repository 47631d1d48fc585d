"""Exa on this machine: ``POST /search`` over the pages and people it is given."""

from agentic.local.providers.exa.app import Exa

__all__ = ["Exa"]
