"""FullEnrich: the work addresses of up to 25 people at a time, submitted, answered through a callback, and collected."""

from agentic.services.provider_jobs.fullenrich.account import FullEnrichAccount
from agentic.services.provider_jobs.fullenrich.provider import FullEnrich

__all__ = ["FullEnrich", "FullEnrichAccount"]
