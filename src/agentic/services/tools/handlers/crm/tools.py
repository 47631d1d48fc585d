"""The CRM's tools over the tables of organizations. Joined here and nowhere else."""

from agentic.services.tools.declarations import Tool
from agentic.services.tools.handlers.crm.company_tools import company_tools
from agentic.services.tools.handlers.crm.list_tools import list_tools
from agentic.services.tools.handlers.crm.people_tools import people_tools
from agentic.services.tools.scoped_db import ScopedDatabase


def crm_tools(db: ScopedDatabase) -> list[Tool]:
    """Companies, people and lists: ``App(scoped_tools=[crm_tools])``.

    Args:
        db: where they are.
    """
    return [*people_tools(db), *company_tools(db), *list_tools(db)]
