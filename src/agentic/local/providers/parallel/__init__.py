"""Parallel on this machine: ``POST /v1/search`` over the pages it is given."""

from agentic.local.providers.parallel.app import Parallel

__all__ = ["Parallel"]
