"""The contacts of a file into the CRM, by the rules of the tools: what is there already is found, and changed where the file differs.

Each person and each company is written by itself, so a process that dies leaves whole ones behind, and running it again completes
the rest. Of a file that went in before, nothing is written.
"""

from dataclasses import dataclass
from uuid import UUID

from agentic.services.tools.handlers.crm.companies import upsert_company
from agentic.services.tools.handlers.crm.importing.contacts import company_facts, merge_contacts, person_facts
from agentic.services.tools.handlers.crm.importing.csv_file import ImportReport
from agentic.services.tools.handlers.crm.keyed import Saved
from agentic.services.tools.handlers.crm.people import upsert_person
from agentic.services.tools.scoped_db import ScopedDb
from agentic.services.tools.scoped_queries import Row


@dataclass(kw_only=True, slots=True)
class Tally:
    """How many there were, by what became of them."""

    created: int = 0
    changed: int = 0
    unchanged: int = 0

    def count(self, saved: Saved) -> None:
        """Count one."""
        if saved.created:
            self.created += 1
        elif saved.changed:
            self.changed += 1
        else:
            self.unchanged += 1


@dataclass(frozen=True, kw_only=True, slots=True)
class Entered:
    """What became of a file."""

    companies: Tally
    people: Tally


async def enter(db: ScopedDb, report: ImportReport) -> Entered:
    """Bring a file's companies and people into the CRM, in the order of the file.

    Raises:
        NotFound, RetryableUpstreamError: somebody else was working on the same rows; what was entered stays, and it may be run again.
        StorageUnavailable: likewise.
    """
    entered = Entered(companies=Tally(), people=Tally())
    ids: list[UUID] = []
    for company in report.companies:
        saved = await upsert_company(db, company_facts(company))
        entered.companies.count(saved)
        ids.append(UUID(saved.id))
    theirs = [None if position is None else ids[position] for position in report.memberships]
    # two names of the file may be one company of the CRM, and then two of its people one person
    read: dict[str, Row] = {}
    for contact, company_id in zip(*merge_contacts(report.contacts, theirs), strict=True):
        entered.people.count(await upsert_person(db, person_facts(contact, company_id), companies=read))
    return entered
