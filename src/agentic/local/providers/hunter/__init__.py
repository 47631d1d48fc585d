"""Hunter on this machine: email finder, domain search, company enrichment and the account's balance."""

from agentic.local.providers.hunter.app import Hunter, Person

__all__ = ["Hunter", "Person"]
