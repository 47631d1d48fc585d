"""The demo's CRM: an export read with care, four tables, and the few things the demo's tools do with them."""

from agentic.local.demo.crm.contacts import Company, Contact
from agentic.local.demo.crm.csv_import import SAMPLE, ImportReport, load_contacts
from agentic.local.demo.crm.problems import CsvProblem
from agentic.local.demo.crm.store import (
    Person,
    add_to_list,
    ensure_schema,
    list_people,
    replace_contacts,
    search_people,
    upsert_company,
)

__all__ = [
    "SAMPLE",
    "Company",
    "Contact",
    "CsvProblem",
    "ImportReport",
    "Person",
    "add_to_list",
    "ensure_schema",
    "list_people",
    "load_contacts",
    "replace_contacts",
    "search_people",
    "upsert_company",
]
