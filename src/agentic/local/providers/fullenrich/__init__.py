"""A stand-in for FullEnrich."""

from agentic.local.providers.fullenrich.app import Batch, FullEnrichStandIn

__all__ = ["Batch", "FullEnrichStandIn"]
