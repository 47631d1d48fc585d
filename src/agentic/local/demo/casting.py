"""What is decided before anything starts: whom the story is about, who plays the model, whose function server it is."""

import os
from dataclasses import dataclass
from pathlib import Path

from agentic.local.demo.agent import NobodyToWrite, pick_target
from agentic.local.demo.enrichment.people import Sought, require_somebody, sought
from agentic.local.demo.options import DemoOptions
from agentic.local.demo.settings import REHEARSAL, Target
from agentic.local.function_server import NamedServer, named_server, require_reachable
from agentic.services.tools.handlers.crm.importing import ImportReport, load_contacts

MODEL = "AGENTIC_MODEL"
SAMPLE = Path(__file__).parent / "data" / "contacts.csv"
"""The export that ships with the package. Its people are invented."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Casting:
    """The decisions.

    Attributes:
        model: the model string, or the rehearsal's name.
        report: the contacts, read.
        target: whom the email's story is about; ``None`` only where the other story is told.
        people: whose missing addresses are looked up, where that story is told.
        named: the person's own function server, if the environment names one.
    """

    model: str
    report: ImportReport
    target: Target | None
    people: tuple[Sought, ...]
    named: NamedServer | None


def cast(options: DemoOptions) -> Casting:
    """Decide, and find out what cannot work.

    Raises:
        CsvProblem: the contacts cannot be read.
        NobodyToWrite: none of them has an email.
        NobodyToFind: addresses are to be looked up, and nobody can be.
        FunctionServerAway: the environment names a function server that does not answer.
        ProgramFault: the model cannot be made; says what is missing.
    """
    file = options.csv or SAMPLE
    report = load_contacts(file)
    people = sought(report.contacts)
    if options.enrich:
        require_somebody(people, file.name)
    target = _target(report, file.name, needed=not (options.enrich or options.mcp))
    named = named_server()
    if named is not None:
        require_reachable(named)
    return Casting(model=_model(), report=report, target=target, people=people, named=named)


def _target(report: ImportReport, file: str, *, needed: bool) -> Target | None:
    try:
        return pick_target(report, file)
    except NobodyToWrite:
        if needed:
            raise
        return None


def _model() -> str:
    model = os.environ.get(MODEL, "").strip() or REHEARSAL
    if model != REHEARSAL:
        from agentic.runtime.agent.agno.runtime import AgnoLoop  # half a second that a rehearsal spends elsewhere

        AgnoLoop().check_model(model)
    return model
