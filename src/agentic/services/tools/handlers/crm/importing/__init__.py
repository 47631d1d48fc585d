"""A CRM export in a CSV file, read with care and entered by the rules of the CRM's tools."""

from agentic.services.tools.handlers.crm.importing.contacts import Company, Contact
from agentic.services.tools.handlers.crm.importing.csv_file import ImportReport, load_contacts
from agentic.services.tools.handlers.crm.importing.entering import Entered, Tally, enter
from agentic.services.tools.handlers.crm.importing.problems import BadRow, CsvProblem

__all__ = [
    "BadRow",
    "Company",
    "Contact",
    "CsvProblem",
    "Entered",
    "ImportReport",
    "Tally",
    "enter",
    "load_contacts",
]
