"""Firecrawl on this machine: ``POST /v2/scrape`` over the pages it is given."""

from agentic.local.providers.firecrawl.app import Firecrawl, Page

__all__ = ["Firecrawl", "Page"]
