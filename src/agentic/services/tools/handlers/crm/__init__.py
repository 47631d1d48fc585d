"""The organization's own CRM: people, companies and lists in the package's tables (docs/crm-tools.md)."""

from agentic.services.tools.handlers.crm.tools import crm_tools

__all__ = ["crm_tools"]
